"""`foveal.Trainer(fsdp=True)`: processes share the weights of a user's module."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from foveal.api.own_module.sharing import check_sharing
from foveal.core.errors import UserError
from tests.support.own_script import SHARED_SCRIPT, run_script


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SHARED_SCRIPT)
    return tmp_path


def train(processes: int, *arguments: str) -> tuple[list[float], dict[str, Tensor]]:
    """Run the script. Return the losses in the log, and the weights of the run."""
    result = run_script(processes, *arguments)
    assert result.returncode == 0, result.stderr
    assert "evaluated" in result.stdout
    run = Path(arguments[0])
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines], safetensors.torch.load_file(run / "model.safetensors")


def check_close(first: Any, second: Any, tolerance: float) -> None:
    assert first[0] == pytest.approx(second[0], rel=tolerance)
    assert first[1].keys() == second[1].keys()
    for name, weight in first[1].items():
        assert weight.dtype == second[1][name].dtype
        assert torch.allclose(weight, second[1][name], rtol=0, atol=tolerance), name


def test_a_shared_module_trains_as_a_whole_one() -> None:
    """In float64; with tied weights, one without an axis, an unused one, integers and buffers. Afterwards the
    module has whole weights, those of the run."""
    shared = train(2, "shared")
    whole = train(1, "alone")
    check_close(shared, whole, 1e-12)
    assert any(path.name.startswith("weights-1") for path in Path("shared").glob("checkpoints/*/*"))
    assert not any(path.name.startswith("weights-1") for path in Path("alone").glob("checkpoints/*/*"))


@pytest.mark.slow
def test_a_shared_module_goes_on() -> None:
    """Bit for bit with as many processes; and with others, or with whole modules, up to rounding."""
    for run in ("first", "second", "other"):
        train(2, run, "short")
    first, second = train(2, "first"), train(2, "second")
    assert first[0] == second[0]
    assert all(torch.equal(first[1][name], second[1][name]) for name in first[1])
    check_close(train(1, "other"), first, 1e-12)


@pytest.mark.slow
def test_bfloat16() -> None:
    """The run keeps float32. Rounding to bfloat16 where one process rounds leaves the order of sums."""
    check_close(train(2, "shared", "bfloat16"), train(1, "alone", "bfloat16"), 1e-4)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.ModuleDict({"a": nn.Linear(2, 2)}), nn.Linear(2, 2)])
        self.head = nn.Linear(2, 2)


def test_what_can_not_be_shared_is_refused_by_name() -> None:
    lines = list[str]()
    module = Tied()
    check_sharing(module, lines.append)
    assert not lines
    check_sharing(nn.Sequential(nn.Linear(2, 2)), lines.append)
    assert "no nn.ModuleList" in lines[0]
    layer = module.layers[1]
    assert isinstance(layer, nn.Linear)
    module.head.weight = layer.weight
    with pytest.raises(UserError, match=r"layers\.1\.weight and head\.weight are the same weight"):
        check_sharing(module, lines.append)
    mixed = Tied()
    mixed.head.double()
    with pytest.raises(UserError, match="the trained weights are of float32, float64"):
        check_sharing(mixed, lines.append)
