"""What decides a text that is written: how many tokens, where it ends, what its noise depends on."""

from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.generation.options import TARGET_BEAM, TARGET_LENGTH_PENALTY
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.text_writer import TextWriter, text_writer
from tests.support.language_runs import language_run
from tests.support.untrained_runs import KINDS, UntrainedRun

TEXT = "the old red cat sees a dog\n" * 20


def writer(run: Any, tokens: int, **options: Any) -> TextWriter:
    return text_writer(run, InputOptions(**options), tokens, print)[0]


def short_run() -> Any:
    """Return a run whose model has learned the vectors of 12 positions."""
    settings = ("model.mixers=attention", "task.batching=windows", "model.positions.kind=learned")
    return language_run(TEXT, *settings, "data.context_length=12")


@pytest.mark.parametrize(("written", "limit"), [(3, 3), (8, 8), (9, 8), (500, 8)])
def test_a_continuation_ends_where_the_model_can_read_no_more(written: int, limit: int) -> None:
    """A model that reads 12 tokens writes 8 after 5: the last one is written and never read."""
    run = short_run()
    assert run.model.limit == 12
    assert writer(run, written, text="a cat").limit == limit


def test_a_text_as_long_as_what_the_model_reads() -> None:
    run = short_run()
    assert writer(run, 9, text="the old red ").limit == 1
    with pytest.raises(UserError, match="13 tokens"):
        writer(run, 9, text="the old red c")


def test_a_model_that_reads_any_length_writes_what_is_asked_for() -> None:
    continuation = writer(language_run(TEXT), 500, text="a cat")
    assert (continuation.limit, continuation.end_tokens, continuation.beam) == (500, frozenset(), 0)


def test_the_noise_depends_on_the_text() -> None:
    """A typed text is the key as it was typed; that of a window is its own text."""
    run = language_run(TEXT)
    assert writer(run, 5, text="a cat").noise_key == "a cat"
    first = writer(run, 5, row=0)
    assert first.noise_key == run.processor.decode(first.prompt) != ""


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> UntrainedRun:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.chdir(tmp_path_factory.mktemp("here"))
        return KINDS["translation"]()


def test_a_target_is_written_as_generate_writes_it(
    translation: UntrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path))
    objective = translation.objective
    target = writer(translation, 500, text="a cat")
    assert target.prompt == (objective.special_tokens.bos,)
    assert target.end_tokens == {objective.special_tokens.eos}
    assert target.noise_key == "a cat"
    assert (target.beam, target.length_penalty) == (TARGET_BEAM, TARGET_LENGTH_PENALTY)
    assert target.chosen is not None
    assert target.limit == objective.limits(target.chosen.batch)[0] < 500
    assert writer(translation, 2, text="a cat").limit == 2
