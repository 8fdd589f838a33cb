"""What DATA is for: its form, its columns, and the settings that name them."""

from pathlib import Path

import pytest

from foveal.data.infer_task import infer_task


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text("review,mood\nfine,good\n")
    return str(path)


NAMED = {
    "": "language-model",
    "text=review": "language-model",
    "label=mood": "text-classification",
    "text=review label=mood": "text-classification",
    "source=review target=mood": "translation",
    "source=review": "translation",
    "tags=mood": "tagging",
}


@pytest.mark.parametrize("settings", NAMED)
def test_settings_that_name_columns_decide(settings: str, table: str) -> None:
    """So that what lacks, or is misspelt, is an error of the task that was meant."""
    named = dict(setting.split("=") for setting in settings.split())
    assert infer_task(table, named) == NAMED[settings]


def test_the_column_of_texts_counts_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("review,label\nfine,good\n")
    assert infer_task(str(path), {}) == "language-model"
    assert infer_task(str(path), {"text": "review"}) == "text-classification"
    path.write_text("source,target,mood\na,b,c\n")
    assert infer_task(str(path), {}) == "translation"
    assert infer_task(str(path), {"text": "source", "label": "mood"}) == "text-classification"


def test_other_forms_say_their_task_themselves(tmp_path: Path) -> None:
    path = tmp_path / "sentences.conllu"
    path.write_text("")
    assert infer_task(str(path), {"text": "x"}) == "tagging"
    assert infer_task("scan", {"label": "x"}) == "transduction"
