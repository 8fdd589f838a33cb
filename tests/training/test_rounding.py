"""Each step of a log says why its last bits may be others than those of the process that began the run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.distributed.world import ONE_PROCESS, World
from foveal.store.run import open_run
from foveal.training.extension import extend_budget
from foveal.training.rounding import rounding_of
from tests.support.run_fingerprint import lines
from tests.support.toy_training import new_run, toy_config, train

CPU = torch.device("cpu")


class SplitLayers(World):
    @property
    def layout(self) -> str:
        return "--tp 2"


@pytest.mark.parametrize(
    ("world", "begun", "expected"),
    [
        (ONE_PROCESS, {}, ""),
        (ONE_PROCESS, {"data": {"device": "cpu"}}, ""),
        (SplitLayers(), {}, "--tp 2"),
        (SplitLayers(), {"threads": 3}, "--tp 2, 1 thread"),
        (ONE_PROCESS, {"torch": "1.0"}, f"torch {torch.__version__}"),
        (ONE_PROCESS, {"data": {"device": "cuda:1"}}, "--device cpu"),
    ],
)
def test_what_rounds_otherwise(world: World, begun: dict[str, Any], expected: str, tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", toy_config())
    run = replace(run, manifest=run.manifest | begun)
    assert rounding_of(run, CPU, world) == expected


def test_the_steps_of_a_run_that_goes_on_otherwise_say_so(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(path, toy_config(training={"budget": "3steps"}))
    extend_budget(open_run(path), "+2steps", 6, lambda line: None)
    torch.set_num_threads(2)
    try:
        train(path)
    finally:
        torch.set_num_threads(1)
    steps = [record for record in lines(path / "metrics.jsonl") if record["kind"] == "step"]
    assert [record.get("rounding", "") for record in steps] == ["", "", "", "2 threads", "2 threads"]
