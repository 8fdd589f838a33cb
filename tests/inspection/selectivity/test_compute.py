"""Half-lives against the closed form and against running the recurrence; selection by hand."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.progress import no_progress
from foveal.inspection.selectivity.compute import LayerMemory, layer_memories
from foveal.inspection.selectivity.view import SelectivityView
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.rwkv import TimeMixing
from foveal.layers.mixers.s5 import S5
from foveal.ops.recurrent.rwkv import wkv
from foveal.ops.ssm.selective_scan import selective_scan
from tests.support.untrained_runs import CORPUS, DECODER, UntrainedRun, untrained_run, write_plays

VIEW = SelectivityView()


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def test_the_half_life_of_set_numbers() -> None:
    """A = -2, delta = 0.1: ln 2 / 0.2 steps."""
    mixer = Mamba(2, expansion=1, states=1)
    with torch.no_grad():
        mixer.A_log.copy_(torch.tensor([[2.0], [0.5]]).log())
        lives = mixer.half_lives(torch.tensor([0.1, 0.4]))
    assert lives.flatten().tolist() == pytest.approx([math.log(2) / 0.2, math.log(2) / 0.2])


def test_a_channel_varies_by_its_deviation_over_its_mean() -> None:
    memory = LayerMemory("x", np.ones((2, 1)), np.array([[1.0, 4.0], [3.0, 4.0], [2.0, 4.0]]))
    assert memory.variation().tolist() == pytest.approx([math.sqrt(2 / 3) / 2, 0.0])


def test_a_scanned_state_is_half_after_its_half_life() -> None:
    """A step of half-life / n leaves 2^(-1/n) of the state; n of them a half."""
    steps, mixer = 6, Mamba(4, expansion=1, states=3)
    with torch.no_grad():
        rates = mixer.A_log.exp()
        delta = math.log(2) / rates[:, :1].flatten() / steps  # the first state of each channel halves
        lives = mixer.half_lives(delta)
        zeros = torch.zeros(1, steps, 4)
        h = torch.ones(1, 4, 3)
        _, last = selective_scan(
            zeros, delta.expand(1, steps, 4).contiguous(), -rates, zeros[..., :3], zeros[..., :3], h
        )
    assert lives[:, 0].tolist() == pytest.approx([steps] * 4)
    assert last[0, :, 0].tolist() == pytest.approx([0.5] * 4)
    assert torch.allclose(last[0], 0.5 ** (steps / lives), atol=1e-6)


def test_s5_and_rwkv_decay_as_their_half_lives_say() -> None:
    s5, x = S5(4, 6, 2).double(), torch.zeros(1, 8, 4).double()
    with torch.no_grad():
        _, state = s5(x, {"s": torch.ones(1, 6, 2).double()})
        left = state["s"][0].norm(dim=1) / math.sqrt(2)
        assert torch.allclose(left, 0.5 ** (8 / s5.half_lives()[:, 0]))
        rwkv = TimeMixing(5).double()
        lives = rwkv.half_lives()[:, 0]
        k = torch.zeros(1, 7, 5).double()
        k[:, 1:] = -1e9  # only the first value counts
        ones = torch.ones_like(k)
        _, (numerator, _, exponent) = wkv(
            k,
            ones,
            -rwkv.decay.exp(),
            rwkv.bonus,
            tuple(rwkv.init_state(1)[name] for name in ("numerator", "denominator", "exponent")),
            None,
        )
        assert torch.allclose(numerator * exponent.exp(), 0.5 ** (6 / lives)[None])


def test_constant_steps_are_those_of_no_selection() -> None:
    mixer, x = Mamba(4).double(), torch.randn(1, 6, 4).double()
    before = {name: weight.clone() for name, weight in mixer.state_dict().items()}
    sizes = torch.rand(8).double() + 0.01
    taken = list[torch.Tensor]()
    mixer.tap = lambda site, compute: taken.append(compute())  # type: ignore[method-assign]
    with torch.no_grad(), mixer.constant_steps(sizes):
        mixer(x)
    assert torch.allclose(taken[0], sizes.expand(1, 6, 8))
    assert all(weight.equal(before[name]) for name, weight in mixer.state_dict().items())


_made: dict[str, UntrainedRun] = {}


def run_of(mixer: str) -> UntrainedRun:
    if mixer not in _made:
        _made[mixer] = untrained_run(write_plays(), mixer, *DECODER, *CORPUS)
    return _made[mixer]


@pytest.mark.parametrize("mixer", ["mamba", "s5", "rwkv"])
@pytest.mark.parametrize("text", [None, "a"])
def test_each_run_with_decaying_states_has_the_view(mixer: str, text: str | None) -> None:
    run = run_of(mixer)
    assert VIEW.fits(run) == ""
    payload = VIEW.compute(run, VIEW.Options(text=text), lambda line: None, no_progress)
    json.dumps(payload.to_json(), allow_nan=False)
    costs = VIEW.ablate(run, VIEW.Options(text=text), lambda line: None)
    assert len(costs) == (mixer == "mamba")
    assert all(np.isfinite(cost.after) for cost in costs)


def test_the_steps_are_those_of_the_layer() -> None:
    """Column t of the view is softplus of token t's projection."""
    run: Any = run_of("mamba")
    chosen = run.task.input_of_row(run.prepared.held_out, 0)
    (layer,) = layer_memories(run.model, chosen)
    mixer, read = run.model.get_submodule(layer.path), list[torch.Tensor]()
    handle = mixer.selection.register_forward_hook(lambda _, inputs, output: read.append(output))
    with torch.no_grad():
        chosen.log_probabilities()
        expected = torch.nn.functional.softplus(mixer.delta(read[0][0, :, : mixer.rank]))
        assert layer.step_sizes is not None
        assert np.allclose(layer.step_sizes, expected.numpy(), atol=1e-6)
        assert np.allclose(layer.half_lives, mixer.half_lives(expected.mean(0)).numpy(), rtol=1e-4)
    handle.remove()


def test_other_runs_have_no_such_view() -> None:
    assert "no layer" in VIEW.fits(untrained_run(write_plays(), "gru", *DECODER, *CORPUS))
