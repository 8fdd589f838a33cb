"""Targets without a processor, and the target of a task without targets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.examples import Column
from foveal.data.core.rows import Row
from foveal.data.pairs.target import FittingData, Target, TargetProcessor


class NoTargetProcessor(TargetProcessor):
    """The processor of a target with nothing to fit."""

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        return ""


class UnfittedTarget(Target[NoTargetProcessor]):
    """A target with nothing to fit, and so without files."""

    def fit(self, fitting: FittingData) -> NoTargetProcessor:
        return NoTargetProcessor()

    def files(self, processor: NoTargetProcessor, source_processor: Any) -> dict[str, bytes]:
        return {}

    def load(self, folder: Path, source_processor: Any) -> NoTargetProcessor:
        return NoTargetProcessor()


class NoTarget(UnfittedTarget):
    """No target. Labels in the data are ignored."""

    settings = ()

    def encode(self, row: Row, processor: NoTargetProcessor, config: DataConfig) -> tuple[()]:
        return ()

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {}

    def references(self, rows: Sequence[Row]) -> list[Any]:
        return []
