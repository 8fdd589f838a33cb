"""`foveal.Trainer` in several processes, which torchrun starts."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from foveal.api.own_module.in_ranks import check_module
from foveal.config import TrainingConfig
from foveal.core.errors import UserError
from foveal.training.module.batch import cut_rows, make_batch
from foveal.training.module.batches import BatchOptions
from foveal.training.module.sources import held_out_batches
from tests.support.own_script import SCRIPT, run_script

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SCRIPT)
    return tmp_path


def weights_of(run: str) -> dict[str, Tensor]:
    return safetensors.torch.load_file(Path(run, "model.safetensors"))


def losses_of(run: str) -> list[Any]:
    lines = map(json.loads, Path(run, "metrics.jsonl").read_text().splitlines())
    return [(line["kind"], line["step"], line["loss"]) for line in lines]


def test_two_processes_are_one() -> None:
    """Dropout, a shuffled loader whose last batch is short, metrics, and an evaluation that is shared."""
    two = run_script(2, "two")
    assert two.returncode == 0, two.stderr
    assert two.stdout.count("held out loss") + two.stderr.count("held out loss") > 2, "printed by one"
    one = run_script(1, "one", "slots")
    assert one.returncode == 0, one.stderr
    assert losses_of("one") == losses_of("two")
    for name, weight in weights_of("one").items():
        assert torch.equal(weight, weights_of("two")[name]), name


@pytest.mark.slow
def test_another_number_of_processes_goes_on() -> None:
    assert run_script(2, "moved", "short").returncode == 0
    assert run_script(1, "moved").returncode == 0
    assert run_script(1, "one", "slots", "short").returncode == 0
    assert run_script(1, "one", "slots").returncode == 0
    assert losses_of("one") == losses_of("moved")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("batches", "the processes have different batches: give the same whole batches"),
        ("later", "the processes have different batches: give the same whole batches"),
        ("module", "module: the processes have different modules"),
        ("norm", "1: BatchNorm1d reads the whole batch, of which each process has a part"),
    ],
)
def test_what_processes_can_not_train_together(fault: str, message: str) -> None:
    result = run_script(2, "run", fault)
    assert result.returncode
    assert message in result.stderr


@dataclass
class Row:
    inputs: Tensor
    name: str


class Pair(NamedTuple):
    inputs: Tensor
    labels: np.ndarray


def test_rows_of_any_batch() -> None:
    x, labels = torch.arange(10).view(5, 2), np.arange(5)
    rows = slice(1, 3)
    assert cut_rows(x, rows, 5).tolist() == [[2, 3], [4, 5]]
    pair = cut_rows(Pair(x, labels), rows, 5)
    assert isinstance(pair, Pair)
    assert pair.labels.tolist() == [1, 2]
    assert cut_rows({"text": [*"abcde"], "scale": torch.tensor(2.0), "n": 3}, rows, 5) == {
        "text": ["b", "c"],
        "scale": torch.tensor(2.0),
        "n": 3,
    }
    assert cut_rows(Row(x, "five"), rows, 5).name == "five"
    assert [part.tolist() for part in cut_rows([x, x], slice(0, 1), 5)] == [[[0, 1]], [[0, 1]]]
    with pytest.raises(UserError, match="batches of 5 rows with an array of 2 can't be shared"):
        cut_rows((x, torch.ones(2)), rows, 5)


def test_a_part_has_its_own_weight() -> None:
    batch = make_batch((torch.ones(4, 3), torch.tensor([1, 2, 3, 4])), CPU, lambda value: value[1].sum())
    parts = [batch.cut(slice(0, 1)), batch.cut(slice(1, 4))]
    assert [part.weight for part in parts] == [1, 9]
    assert [part.rows for part in parts] == [1, 3]
    assert make_batch(torch.ones(4, 3), CPU, None).cut(slice(1, 3)).weight == 2


def test_some_of_the_held_out_batches() -> None:
    """A process asks for each second one, again in each evaluation; and for the last one twice."""
    batches = held_out_batches([torch.full((1,), number) for number in range(5)], BatchOptions(CPU, 0, print))
    for asked in ([1, 3, 4], [1, 3, 4], [0, 1, 2, 3, 4], [4, 4], [2]):
        assert [int(batches.batch(0, index).value) for index in asked] == asked


def test_batch_norm_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="1: BatchNorm2d reads the whole batch"):
        check_module(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), TrainingConfig(), 2)
    check_module(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), TrainingConfig(), 1)
    check_module(nn.Sequential(nn.Linear(1, 1), nn.LayerNorm(1)), TrainingConfig(), 2)
    with pytest.raises(UserError, match="no stack of blocks"):
        check_module(nn.Linear(1, 1), TrainingConfig(activation_checkpointing=True), 1)
