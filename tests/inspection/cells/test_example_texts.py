"""The view `cells` of encoders of texts: classifiers, taggers, translators."""

from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.kill import own_cache
from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.cells.example_texts import encoder_states, text_states
from foveal.inspection.cells.view import CellsOptions, CellsView
from tests.support.untrained_runs import (
    DECODER,
    ENCODER,
    KINDS,
    PIECES,
    UntrainedRun,
    untrained_run,
    write_labeled,
    write_plays,
    write_reversed,
    write_tagged,
)

VIEW = CellsView()
BACKWARD = ("model.encoder.mixers=gru", "model.encoder.bidirectional=true")
RUNS: dict[str, tuple[Any, ...]] = {
    "text-classification": (write_labeled, "text-classification", *ENCODER, *PIECES, *BACKWARD),
    "tagging": (write_tagged, "tagging", *ENCODER),
    "word-tagging": (write_tagged, "word-tagging", *ENCODER),
    "translation": (write_reversed, "translation", *ENCODER, *DECODER, *PIECES, *BACKWARD),
    "transformer": (write_reversed, "translation", *ENCODER, *DECODER, *PIECES),
}
FAST = ("text-classification", "transformer")
"""The kinds that are tested at every change."""
_made: dict[str, UntrainedRun] = {}


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    monkeypatch.setattr("foveal.inspection.cells.example_texts.FEWEST_TOKENS", 12)


def run_of(kind: str) -> UntrainedRun:
    if kind not in _made:
        write, *settings = RUNS[kind]
        _made[kind] = untrained_run(write(), *settings)
    return _made[kind]


def options_of(kind: str, **options: Any) -> CellsOptions:
    """Return options that name all rows as held-out data."""
    return CellsOptions(**{"data": RUNS[kind][0]()} | options)


def inspect(kind: str, **options: Any) -> Any:
    return VIEW.compute(run_of(kind), options_of(kind, **options), print, no_progress)


@pytest.mark.parametrize(
    "kind",
    [kind if kind in FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in RUNS],
)
def test_every_encoder_of_texts(kind: str) -> None:
    run = run_of(kind)
    assert VIEW.fits(run) == ""
    before = {name: weight.clone() for name, weight in run.model.state_dict().items()}
    payload = inspect(kind)
    (text,) = payload.drawn()
    assert text.array.values.shape == (3, len(text.tokens))
    assert "the " in "".join(text.tokens).lstrip()
    assert all(np.isfinite([cell["r"], cell["control"]]).all() for cell in payload.values["cells"])
    assert {cell["layer"] for cell in payload.values["cells"]} <= {*encoder_states(run.model)}
    (typed,) = inspect(kind, text="the big red cat", unit=3).drawn()
    assert "".join(typed.tokens).split() == ["the", "big", "red", "cat<stop>"] or "cat" in typed.tokens[-1]
    costs = VIEW.ablate(run, options_of(kind, find="position in word"), print)
    assert len(costs) == 1
    assert costs[0].before != costs[0].after
    assert all(torch.equal(before[name], weight) for name, weight in run.model.state_dict().items())


def test_a_state_of_the_backward_direction_stands_at_its_token() -> None:
    """The last token is the first that is read backward, so its state depends on it alone."""
    run = run_of("text-classification")
    one, other = (run.task.input_of_text(text) for text in ("the big red cat", "a sad old blue cat"))
    there, back = encoder_states(run.model)
    assert (there.split(".")[-1], back.split(".")[-1]) == ("there/h", "back/h")
    first, second = (text_states(run.model, chosen, [there, back]) for chosen in (one, other))
    torch.testing.assert_close(first[back][-1], second[back][-1])
    assert not torch.allclose(first[back][0], second[back][0])
    mixer = run.model.encoder.stack.blocks[0].mixer
    read: list[torch.Tensor] = []
    handle = mixer.register_forward_hook(lambda _, inputs, output: read.append(output[0]))
    with torch.inference_mode():
        one.log_probabilities()
    handle.remove()
    torch.testing.assert_close(torch.cat([first[there], first[back]], 1), read[0][0])


def test_a_unit_that_counts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit 5 is set to the place of the token's last character in its text."""

    def counting(model: Any, chosen: Any, layers: Any) -> dict[str, torch.Tensor]:
        states = {name: values.clone() for name, values in text_states(model, chosen, layers).items()}
        lengths = [len(name) for name in chosen.source[:-1]]
        states[layers[0]][:, 5] = torch.tensor([*np.cumsum(lengths), sum(lengths)]) / 100
        return states

    run = run_of("tagging")
    monkeypatch.setattr("foveal.inspection.cells.example_texts.text_states", counting)
    (cell,) = inspect("tagging", find="position in line").values["cells"]
    assert (cell["layer"], cell["unit"]) == (encoder_states(run.model)[0], 5)
    assert cell["r"] > 0.98
    assert cell["control"] < 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": " "}, "--text is empty"),
        ({"layer": "head"}, "no such layer; it has encoder.stack"),
        ({"unit": 99}, "units, counted from 0"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        inspect("tagging", **options)


def test_too_few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.inspection.cells.example_texts.FEWEST_TOKENS", 10**6)
    with pytest.raises(UserError, match="too few to search units in"):
        inspect("tagging")


def test_an_encoder_of_images_has_no_such_view() -> None:
    assert "needs a language model or an encoder of texts" in VIEW.fits(KINDS["captioning"]())
    assert VIEW.fits(untrained_run(write_plays(), "gru", *DECODER)) == ""
