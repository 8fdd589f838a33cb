"""The saturation of gates that are set by hand, and the kinds of runs that have gates."""

from typing import Any

import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.gates.compute import saturation
from foveal.inspection.gates.view import GatesOptions, GatesView
from foveal.layers import LSTM
from tests.support.language_runs import language_run, one_hot_model

TEXT = "ab " * 40


def inspect(run, **options):
    return GatesView().compute(run, GatesOptions(**options), print, no_progress)


def test_gates_that_follow_a_letter():
    """i_0 is open at `a` alone, f_1 is always open, o_2 is always closed, and all others are half open."""
    mixer: Any = LSTM(3, 4)
    run = language_run(TEXT, model=one_hot_model(mixer))
    with torch.no_grad():
        for weight in mixer.cell.parameters():
            weight.zero_()
        i, f, _, o = range(4)
        letter = int(run.processor.encode("a")[0])
        mixer.cell.weight_input.view(4, 4, 3)[i, 0, letter] = 200
        mixer.cell.bias.view(4, 4)[i, 0] = -100
        mixer.cell.bias.view(4, 4)[f, 1] = 100
        mixer.cell.bias.view(4, 4)[o, 2] = -100
    gates = {name[-1]: each for name, each in inspect(run).values["gates"].items()}
    read = TEXT[: 120 // 16 * 16]
    share = read.count("a") / len(read)
    assert gates["i"]["right"] == pytest.approx([share, 0, 0, 0])
    assert gates["i"]["left"] == pytest.approx([1 - share, 0, 0, 0])
    assert gates["f"]["right"] == [0, 1, 0, 0]
    assert gates["o"]["left"] == [0, 0, 1, 0]
    assert [panel.title for panel in inspect(run).panels] == ["input gate", "forget gate", "output gate"]


def test_shares_over_all_chunks():
    chunks = [{"x/f": torch.tensor([[[0.95], [0.5]]])}, {"x/f": torch.tensor([[[0.05], [0.9], [0.1]]])}]
    (each,) = saturation(chunks).values()
    assert each.left.tolist() == pytest.approx([0.2])
    assert each.right.tolist() == pytest.approx([0.2])


@pytest.mark.parametrize(("mixer", "panels"), [("lstm", 3), ("gru", 2), ("lstm,gru", 5), ("gru,rnn", 2)])
def test_kinds_of_runs(mixer, panels):
    run = language_run("é 😀 שלום\n" * 9, f"model.mixers={mixer}")
    assert GatesView().fits(run) == ""
    assert len(inspect(run).panels) == panels
    assert len(inspect(run, data="é").panels) == panels
    with pytest.raises(UserError, match="no tokens"):
        inspect(run, data="")


def test_runs_without_gates():
    assert "an LSTM or GRU" in GatesView().fits(language_run(TEXT, "model.mixers=rnn"))
