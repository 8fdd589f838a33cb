"""A task declares the settings `data.*` that only this task has, in the task's own file."""

from pathlib import Path
from typing import Any

import pytest

from foveal.config import ConfigError
from foveal.config.files import parse_config
from foveal.data.open import DataPaths, open_path
from foveal.plugins.loading import load_plugin
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import choose_training
from foveal.tasks.infer import infer_task
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import task_of

NEW_TASK = '''
import foveal
from foveal.config import DataConfig
from foveal.data.pairs.labels import LabelTarget
from foveal.tasks import text_classification
from foveal.tasks.fit import NO_FIT, Fit


class VerdictDataConfig(DataConfig):
    verdict: str = "verdict"
    """Column of a table that has the verdict."""


class VerdictTarget(LabelTarget):
    settings = ("data.verdict",)

    def column(self, config: DataConfig) -> str:
        assert isinstance(config, VerdictDataConfig)
        return config.verdict


@foveal.register_task("verdicts")
class VerdictTask(text_classification.TextClassificationTask):
    DataSettings = VerdictDataConfig
    target = VerdictTarget()
    columns = ("text", "verdict")

    @classmethod
    def recognizes(cls, data, named):
        return Fit(99, "a verdict is named") if "verdict" in named else NO_FIT
'''
"""The file of a task with a column of its own."""
NAMED = {"task": {"name": "verdicts"}}


@pytest.fixture
def new_task(tmp_path: Path, own_registries: None) -> None:
    """The file of a task is loaded as a plugin."""
    path = tmp_path / "verdicts.py"
    path.write_text(NEW_TASK)
    load_plugin(path)


@pytest.mark.usefixtures("new_task")
def test_a_task_with_a_column_needs_no_other_file(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    texts = "".join(f"it is {number},{'good' if number % 2 else 'bad'}\n" for number in range(40))
    rows.write_text(f"text,mood\n{texts}")
    data = open_path(str(rows))
    assert infer_task(data, {"verdict": "mood"}).name == "verdicts"
    config = choose_training(data, ("data.verdict=mood",), "verdicts", None, None, None, False, print).config
    settings: Any = config.data
    assert (config.task.name, settings.verdict) == ("verdicts", "mood")
    assert 'verdict = "mood"  # Column of a table that has the verdict.' in config_to_toml(config)
    prepared = task_of(config).prepare(DataPaths(str(rows)), lambda line: None)
    assert prepared.processor.target.labels == ("bad", "good")


@pytest.mark.usefixtures("new_task")
def test_the_column_is_a_setting_of_that_task_alone() -> None:
    config = from_tables(NAMED, {"data": {"verdict": "mood"}, "model": {"encoder": {"kind": "text"}}})
    assert from_tables(config.model_dump()) == config
    assert task_of(parse_config(config.model_dump())).config.data == config.data
    other = from_tables(config.model_dump(), {"task": {"name": "text-classification"}})
    assert "verdict" not in other.model_dump()["data"]
    with pytest.raises(ConfigError, match=r"^data\.verdict is not read, since task\.name=language-model"):
        load_config("lstm", ["data.verdict=mood"])
    with pytest.raises(ConfigError, match=r"^unknown key 'data\.verdit'; did you mean 'data\.verdict'\?$"):
        load_config("lstm", ["data.verdit=mood"])
    with pytest.raises(ConfigError, match=r"^unknown key 'data\.question'; "):
        task_of(parse_config(NAMED | {"data": {"question": "q"}}))


def test_errors_of_other_settings_stay_where_a_task_has_its_own() -> None:
    for setting, line in (
        ("data.max_length=0", "data.max_length=0: input should be greater than 0"),
        ("data.image.sise=3", "unknown key 'data.image.sise'; did you mean 'data.image.size'?"),
        ("data.question.sub=1", "data.question={'sub': 1}: input should be a valid string"),
    ):
        with pytest.raises(ConfigError) as refused:
            load_config("vqa", ["data.answer=a", setting])
        assert str(refused.value) == line
