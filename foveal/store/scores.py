"""The scores of a run after its training, for `foveal runs`."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from foveal.core.finite_json import finite_json
from foveal.store.durable import atomic_write
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json, seal_json

SCORES_FILE = "scores.json"


class FinalScores(NamedTuple):
    """The scores of a run's weights on its test set, or on its validation set if there is no other."""

    split: str
    scores: Mapping[str, float | None]


def write_scores(run: Path, step: int, split: str, scores: Mapping[str, float]) -> None:
    """Write the scores of a run whose training ended at a step.

    Raises: RunFailed: the file can't be written.
    """
    content = {"step": step, "split": split, "scores": finite_json(dict(scores))}
    atomic_write(run / SCORES_FILE, seal_json(content))


def read_scores(run: Path, step: int | None) -> FinalScores | None:
    """Return the scores of a run; None if it has none, or those of an earlier `step`, before it went on.

    Raises: UserError: the file is damaged.
    """
    file = run / SCORES_FILE
    if not file.exists():
        return None
    content = open_json(read_regular(file), str(file))
    return FinalScores(content["split"], content["scores"]) if step in (None, content["step"]) else None
