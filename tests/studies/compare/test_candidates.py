"""Models of a comparison read the same data in the same batches, or are refused."""

from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.open import DataPaths
from foveal.studies.compare.candidates import Candidate, EqualTerms, on_equal_terms, unique_names
from foveal.tasks.config import load_config
from tests.support.command_line import TINY_MODEL


@pytest.fixture
def notes(tmp_path: Path) -> DataPaths:
    (tmp_path / "notes.txt").write_text("A man rides a horse. A dog runs.\n" * 100)
    return DataPaths(str(tmp_path / "notes.txt"))


def equal(paths: DataPaths, *presets: str, settings: tuple[str, ...] = TINY_MODEL) -> EqualTerms:
    candidates = [Candidate(preset, preset, load_config(preset, settings)) for preset in presets]
    return on_equal_terms(candidates, paths, lambda line: None)


def test_all_take_the_settings_of_the_first_that_fit_all(notes):
    of = equal(notes, "lstm", "attention", "mamba")
    assert of.origin == "attention"  # attention can't carry its state from chunk to chunk
    assert {each.config.task.name for each in of.candidates} == {"language-model"}
    assert len({each.config.data.model_dump_json() for each in of.candidates}) == 1
    assert {each.config.task.model_dump()["batching"] for each in of.candidates} == {"windows"}
    assert equal(notes, "lstm", "mamba").origin == "lstm"


def test_accumulation_is_shared_since_it_makes_the_batch_of_a_step(notes):
    first = Candidate("a", "lstm", load_config("lstm", [*TINY_MODEL, "training.grad_accumulation=4"]))
    second = Candidate("b", "lstm", load_config("lstm", TINY_MODEL))
    of = on_equal_terms([first, second], notes, lambda line: None)
    assert [each.config.training.grad_accumulation for each in of.candidates] == [4, 4]


def test_models_of_other_tasks_are_refused(notes):
    with pytest.raises(UserError, match="is a model for task masked-lm, and lstm for language-model"):
        equal(notes, "lstm", "masked-lm", settings=())


def test_data_without_held_out_rows_are_refused(notes):
    settings = (*TINY_MODEL, "data.valid_fraction=0", "data.test_fraction=0")
    with pytest.raises(UserError, match=r"no held-out rows to compare on"):
        equal(notes, "lstm", "gru", settings=settings)


def test_too_little_data_for_a_split_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("A man.\n" * 3)
    with pytest.raises(UserError, match=r"notes\.txt"):
        equal(DataPaths(str(tmp_path / "notes.txt")), "lstm", "gru")


def test_names_are_those_of_presets_and_files_with_a_number_if_they_occur_again():
    given = ["lstm", "megatron-1.2b", "mine/lstm.toml", "other.toml"]
    assert unique_names(given) == ["lstm", "megatron-1.2b", "lstm-2", "other"]
    with pytest.raises(UserError, match="two models would be called lstm-2"):
        unique_names(["lstm-2", "lstm", "lstm"])
