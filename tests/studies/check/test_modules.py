"""`foveal check module:Class`: the laws that make sense for a module of the user's own."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import foveal
from tests.support.command_line import refuse, run_command

pytestmark = pytest.mark.usefixtures("own_registries")

MODULES = '''
import sys

import torch
from torch import nn


class Reader(nn.Module):
    """Reads tokens, and goes on from a state."""

    def __init__(self, size=50, width=16):
        super().__init__()
        self.embed = nn.Embedding(size, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, size)

    def forward(self, tokens, state=None):
        y, state = self.gru(self.embed(tokens), state)
        return self.change(self.out(y)), state

    def change(self, y):
        return y


class Forgets(Reader):
    """Sees the whole text, and returns no state."""

    def forward(self, tokens, hidden=None):
        y, _ = super().forward(tokens, hidden)
        return y - y.mean(1, keepdim=True)


class Leaky(Reader):
    def change(self, y):
        return y - y.mean(0)


class Ahead(Reader):
    def change(self, y):
        return y + y.roll(-1, 1)


class Keeps(Reader):
    kept = 0.0

    def change(self, y):
        y = y + self.kept
        self.kept = self.kept + 1.0
        return y


class Never(Reader):
    def change(self, y):
        return y * (y.new_tensor(float("nan")) if len(y) > 1 else 1)


class Coarse(Reader):
    def change(self, y):
        return y.half().to(y.dtype) if y.dtype == torch.float32 else y


class Detached(Reader):
    def change(self, y):
        return y.detach() + self.embed.weight.sum() * 0 + self.out.weight.sum() * 0


class Padded(nn.Module):
    """Takes lengths, and forgets them."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 8)

    def forward(self, x, lengths=None):
        return torch.tanh(self.map(x)).mean(1)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 8)

    def forward(self, x):
        return torch.tanh(self.map(x)).mean(1)


class Unwritten(Bag):
    """Has no gradient of its weights in bfloat16."""

    def forward(self, x):
        weight = self.map.weight
        if torch.is_autocast_enabled("cpu"):
            weight = weight.detach()
        return torch.tanh(nn.functional.linear(x, weight, self.map.bias)).mean(1)


class Weighted(Bag):
    def forward(self, x):
        return super().forward(x * torch.arange(x.shape[1])[:, None])


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 8, 3), nn.Linear(8, 10)

    def forward(self, x):
        return self.out(self.conv(x).relu().mean((2, 3)))


class Wide(nn.Module):
    def __init__(self, width):
        super().__init__()


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 8)

    def forward(self, x, y):
        return self.map(x) + y


class Single(nn.Module):
    """Makes float32 itself."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 8, bias=False)

    def forward(self, x):
        return torch.nn.functional.linear(x.float(), self.map.weight.float())


class Named(Bag):
    """Returns its outputs by their names."""

    names = ("logits",)

    def forward(self, x):
        return dict.fromkeys(self.names, super().forward(x))


class Features(Named):
    names = ("features",)


class Nothing(Bag):
    def forward(self, x):
        return ()


class Quits(Bag):
    def forward(self, x):
        raise SystemExit(3)


class QuitsAlone(Bag):
    """Ends the program for a single row."""

    def forward(self, x):
        return super().forward(x) if len(x) > 1 else sys.exit()


class Unmade(Bag):
    def __init__(self):
        sys.exit("no such file")


def small():
    return Reader(20, 8)


def number():
    return 3
'''
WRONG = {
    "Leaky": ("other rows change nothing", "length 1, row 0, position 0"),
    "Ahead": ("sees no future", "length 2, row 0, position 0"),
    "Keeps": ("keeps nothing between calls", ""),
    "Coarse": ("precisions agree", ""),
    "Detached": ("every parameter learns", ""),
    "Unwritten": ("gradients of precisions agree", ""),
    "Padded": ("padding changes nothing", "length 2, row 1"),
    "Weighted": ("the order of places changes nothing", "length 2, row 0"),
}
"""What each module breaks, and the smallest failing case."""
RIGHT = ("Reader", "Forgets", "Bag", "Named", "Picture", "Single", "small")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "own_modules", raising=False)
    (tmp_path / "own_modules.py").write_text(MODULES)
    (tmp_path / "quits.py").write_text("raise SystemExit(0)")
    return tmp_path


def laws(*arguments: str) -> dict[str, dict[str, Any]]:
    result = run_command("check", *arguments, "--json")
    return {law["law"]: law for law in json.loads(result.out)["laws"]}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("place", ["own_modules", "own_modules.py"])
def test_a_right_module_keeps_the_laws_that_apply(name: str, place: str):
    expected = ("--expect", "set") if name == "Bag" else ()
    checked = laws(f"{place}:{name}", *expected)
    assert "BROKEN" not in {law["verdict"] for law in checked.values()}
    assert checked["other rows change nothing"]["holds"]
    assert checked["sees no future"]["holds"] == (name in ("Reader", "small"))
    assert checked["the order of places changes nothing"]["holds"] == (name == "Bag")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_module_breaks_its_law_in_the_smallest_case(name: str):
    law, case = WRONG[name]
    expected = ("--expect", "set") if name == "Weighted" else ()
    found = laws(f"own_modules:{name}", *expected)[law]
    assert found["verdict"] == "BROKEN"
    assert found["case"].startswith(case)
    result = run_command("check", f"own_modules:{name}", *expected)
    assert result.code == 1
    assert f"{name} breaks '" in result.last


def test_a_difference_from_nan_is_written_in_a_report(folder: Path):
    result = run_command("check", "own_modules:Never", "--out", "report.json", "--json")
    assert result.code == 1
    law = {each["law"]: each for each in json.loads(result.out)["laws"]}["other rows change nothing"]
    assert law["verdict"] == "BROKEN"
    assert law["difference"] is None
    assert "largest difference inf" in (folder / "report.json").read_text()


def test_what_does_not_apply_is_said_with_the_reason():
    assert "forward takes no lengths" in laws("own_modules:Reader")["padding changes nothing"]["problem"]
    assert "takes no state" in laws("own_modules:Bag")["pieces equal the whole"]["problem"]
    forgets = laws("own_modules:Forgets")
    assert "takes hidden, and returns no state" in forgets["pieces equal the whole"]["problem"]
    assert "not expected" in forgets["sees no future"]["problem"]
    assert "no places" in laws("own_modules:Picture")["the order of places changes nothing"]["problem"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("own_modules:Wide",), "needs arguments: name a function without parameters"),
        (("own_modules:Pair",), "forward needs y beside its input"),
        (("own_modules:Readr",), "did you mean 'Reader'?"),
        (("own_modules:number",), "makes no torch.nn.Module, but int"),
        (("no_such_module:Reader",), "can't be imported"),
        (("own_modules:Reader", "--input", "tokens"), "--input tokens: expected tokens:NUMBER"),
        (("own_modules:Reader", "--expect", "order"), "--expect order: expected causal or set"),
        (("own_modules:Reader", "--input", "image:3x8x8"), "forward fails on --input image:3x8x8: "),
        (
            ("own_modules:Features",),
            "own_modules:Features: forward returns a dict without 'logits': return a",
        ),
        (("own_modules:Features", "--input", "vectors:6"), "forward returns a dict without 'logits'"),
        (("own_modules:Nothing",), "own_modules:Nothing: forward returns tuple, not a tensor"),
        (("own_modules:Quits",), "unknown what forward takes (it ends the program (sys.exit))"),
        (("own_modules:Unmade",), "can't be made: it ends the program (sys.exit)"),
        (("own_modules.py:Unmade",), "can't be made: it ends the program (sys.exit)"),
        (
            ("quits:Reader",),
            "quits: can't be imported: it ends the program (sys.exit); put what only a script",
        ),
        (("own_modules:Reader", "model.width=3"), "model.width=3 is for the model of a preset or network"),
        (("own_modules:Reader", "--steps", "3"), "--steps is for a run, which own_modules:Reader is not"),
        (
            ("own_modules.py:Reader", "--steps", "3"),
            "--steps is for a run, which own_modules.py:Reader is not",
        ),
        (("attentoin",), "did you mean 'attention'?"),
        (("nothing/here",), "no run, preset, file or folder"),
    ],
)
def test_what_can_not_be_checked_is_one_plain_line(arguments: tuple[str, ...], words: str):
    assert words in refuse("check", *arguments)


def test_a_module_that_ends_the_program_for_some_inputs_breaks_a_law():
    result = run_command("check", "own_modules:QuitsAlone")
    assert result.code == 1
    assert "it ends the program (sys.exit)" in result.last


def test_in_python_options_that_a_module_does_not_read_are_refused():
    for name, options in (("steps", {"steps": 3}), ("model.width", {"settings": {"model.width": 3}})):
        with pytest.raises(foveal.UserError, match=f"{name}.* is for .*, which Linear is not"):
            foveal.check(nn.Linear(5, 4), quiet=True, **options)


def test_a_module_is_checked_in_python_and_left_as_it_was():
    class Map(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(5, 4)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.map(x)
            return y

    module, state = Map(), torch.get_rng_state()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    laws = foveal.check(module, input="vectors:5", expect="causal", quiet=True)
    assert laws.holds
    assert module.training
    assert all(torch.equal(before[name], weight) for name, weight in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
