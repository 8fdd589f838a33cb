"""Errors and log lines of the Python interface, in words of Python."""

import re
import traceback
from pathlib import Path
from typing import Any

import pytest

import foveal
from foveal.api.errors import plain_errors
from foveal.api.python_words import PythonWords
from foveal.api.results.table import Table
from foveal.core.errors import UserError
from foveal.ui.console import log, print_facts

TRAIN, LOAD = PythonWords(foveal.train), PythonWords(foveal.load)
GENERATE, PREDICT = PythonWords(foveal.Run.generate), PythonWords(foveal.Run.predict)
RESUME, INSPECT = PythonWords(foveal.Run.resume), PythonWords(foveal.Run.inspect)


@pytest.mark.parametrize(
    ("words", "command_line", "python"),
    [
        (TRAIN, "x exists: choose another --run", "x exists: choose another run"),
        (TRAIN, "continue it: foveal resume im1", 'continue it: foveal.Run("im1").resume()'),
        (TRAIN, "few; --from minilm or --model gru", 'few; start_from="minilm" or model="gru"'),
        (TRAIN, "--epochs 2 and --budget 1m: give one", 'epochs=2 and budget="1m": give one'),
        (TRAIN, "train with data.text=NAME, data.target=NAME", 'train with text="NAME", target="NAME"'),
        (TRAIN, "wide: set model.layers=2 or more", 'wide: settings={"model.layers": 2} or more'),
        (TRAIN, "5 steps, and data.max_length=3: more", "5 steps, and data.max_length=3: more"),
        (TRAIN, "leave out --model and model.* settings", "leave out model and model.* settings"),
        (
            TRAIN,
            "foveal train DATA --from im1 --task TASK",
            'foveal.train(DATA, start_from="im1", task=TASK)',
        ),
        (GENERATE, "--temperature 0 is: leave out --top-k", "temperature=0 is: leave out top_k"),
        (GENERATE, "give --out sheet.png or --out FOLDER", 'give out="sheet.png" or out="FOLDER"'),
        (GENERATE, "it answers: foveal predict im1 DATA", "it answers: run.predict(DATA)"),
        (GENERATE, "use foveal predict, or evaluate", "use run.predict, or evaluate"),
        (PREDICT, "--top 0: give 1; --choice", "top=0: give 1; --choice"),
        (LOAD, "give --trust-plugin to run it", "give trust_plugin=True to run it"),
        (LOAD, "foveal import x.bin", "foveal import x.bin"),
        (RESUME, "go on: foveal resume im1 --budget +10m", 'go on: run.resume(budget="+10m")'),
        (INSPECT, "name an image with --query", "name an image with query"),
        (INSPECT, "foveal inspect im1 units --out x.png", 'run.inspect("units")'),
    ],
)
def test_options_are_arguments(here: Path, words: PythonWords, command_line: str, python: str) -> None:
    Path("im1").mkdir()
    assert words.message(command_line) == python


def test_an_error_is_one_line_from_nearby() -> None:
    @plain_errors
    def outer(*, top: int = 0) -> None:
        """Call another function of the interface."""
        inner()

    @plain_errors
    def inner() -> None:
        """Fail in a few steps."""
        try:
            raise KeyError(1)
        except KeyError:
            raise UserError("--top 3: wrong") from UserError("first")

    with pytest.raises(UserError, match=r"^top=3: wrong$") as error:
        outer()
    shown = "".join(traceback.format_exception(error.value))
    assert "KeyError" not in shown
    assert "first" not in shown
    assert "inner" not in shown
    render = error.value._render_traceback_
    assert render() == ["UserError: top=3: wrong"]


def test_the_log_has_words_of_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @plain_errors
    def shown(*, model: str = "") -> None:
        log("20 are few; --model gru")
        print_facts([("next", "foveal predict . DATA")])

    shown()
    assert capsys.readouterr().err == '20 are few; model="gru"\nnext  run.predict(DATA)\n'
    log("--model gru")
    assert capsys.readouterr().err == "--model gru\n"
    monkeypatch.setattr("foveal.ui.console.in_notebook", lambda: True)
    log("not red")
    assert capsys.readouterr() == ("not red\n", "")


RUN: Any = foveal.Run("x")
API: Any = foveal


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: API.train([], batch_size=3), "foveal.train: there is no argument batch_size; did you mean"),
        (lambda: API.train([], width=3), 'width; did you mean settings={"model.width": VALUE}?'),
        (lambda: API.train([], modle="gru"), "no argument modle; did you mean 'model'?"),
        (lambda: API.train([], [1]), "one pair: foveal.train((X, y))"),
        (lambda: RUN.predict([], [1]), "run.predict: 2 values without a name, and it takes 1 (data): name"),
        (lambda: RUN.generate("a", max_new_tokens=3), "max_new_tokens; did you mean tokens?"),
        (lambda: RUN.resume(epochs=3), "run.resume: there is no argument epochs; known: budget, callbacks,"),
        (
            lambda: API.Trainer(1, 2, 3, epochs=3),
            "foveal.Trainer: there is no argument epochs; did you mean b",
        ),
        (
            lambda: API.train([], callbacks="noisy"),
            "callbacks: expected objects with methods such as on_step",
        ),
    ],
)
def test_a_wrong_argument_is_one_line(call: Any, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        call()
    assert isinstance(error.value, TypeError) == (not message.startswith("callbacks"))


def test_a_table_has_columns() -> None:
    table = Table([{"answer": "yes", "probability": 0.5}])
    assert table["answer"] == table.column("answer") == ["yes"]
    with pytest.raises(UserError, match=r"^no column answr; did you mean 'answer'\?$"):
        table["answr"]
    with pytest.raises(UserError, match=r"^no column loss; the table has no rows$"):
        Table([])["loss"]
    with pytest.raises(AttributeError, match=r'^a Table has no answer; a column: table\["answer"\]$'):
        table.answer  # noqa: B018
    with pytest.raises(AttributeError, match=r"^a Table has no to_panda; did you mean 'to_pandas'\?$"):
        table.to_panda  # noqa: B018


def test_the_public_names_are_listed() -> None:
    assert {"train", "Run", "metrics", "layers"} <= {*dir(foveal)}
    assert not {"Any", "import_module"} & {*dir(foveal)}
    assert foveal.metrics.bleu is not None
