"""The target of a task without targets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.examples import Column
from foveal.data.core.fields import Fields
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target, TargetProcessor


class NoTargetProcessor(TargetProcessor):
    """The processor of no target."""

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        return ""


class NoTarget(Target[NoTargetProcessor]):
    """No target. Labels in the data are ignored."""

    settings = ()

    def column(self, config: DataConfig) -> str:
        raise NotImplementedError("no target has no column")

    def parse(self, column: str, value: Any) -> Fields | str:
        return {}

    def fit(
        self,
        data: str,
        rows: list[Row],
        usable: list[Row],
        source: Source[Any],
        source_processor: Any,
        config: DataConfig,
        reused: ReusedProcessors,
    ) -> NoTargetProcessor:
        return NoTargetProcessor()

    def files(self, processor: NoTargetProcessor, source_processor: Any) -> dict[str, bytes]:
        return {}

    def load(self, folder: Path, source_processor: Any) -> NoTargetProcessor:
        return NoTargetProcessor()

    def encode(self, row: Row, processor: NoTargetProcessor, config: DataConfig) -> tuple[()]:
        return ()

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {}

    def references(self, rows: list[Row]) -> list[Any]:
        return []
