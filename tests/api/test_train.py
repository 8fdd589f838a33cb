"""`foveal.train` on values in memory, and what a run can do."""

import json
import os
import pickle
import signal
import threading
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image

import foveal
from foveal.api.values.reader import training_reader
from foveal.training.step import train_step
from tests.support.command_line import TINY_MODEL, run_command, succeed

UNTYPED: Any = foveal
NOT_CALLBACKS: Any = [foveal.Callback]
GOOD, BAD = ["great", "lovely", "fine", "superb"], ["awful", "dull", "bad", "boring"]
TINY = {key: int(value) for key, value in (setting.split("=") for setting in TINY_MODEL)}
TINY["training.evaluate_every"] = 2


def reviews(count: int = 60) -> dict[str, list[str]]:
    """Return texts whose words tell their label."""
    draw = np.random.default_rng(0)
    words = (GOOD, BAD)
    texts = [" ".join(draw.choice(words[row % 2], 4)) + " film" for row in range(count)]
    return {"review": texts, "mood": [("good", "bad")[row % 2] for row in range(count)]}


def sentences() -> list[str]:
    """Return 80 sentences."""
    return [f"the cat number {number} sat on mat number {number * number}" for number in range(80)]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> foveal.Run:
    run = tmp_path_factory.mktemp("classifier") / "run"
    return foveal.train(reviews(), text="review", label="mood", run=run)


def test_a_run_answers_and_shows_itself(classifier: foveal.Run) -> None:
    texts = ["great lovely film", "", "awful dull film"]
    answers = classifier.predict(texts, top=2)
    assert answers.column("answer") == ["good", None, "bad"]
    assert answers.column("review") == ["great lovely film", None, "awful dull film"]
    assert answers[0]["top_k"][0]["answer"] == "good"
    assert "write a source" in answers[1]["reason"]
    assert classifier.predict(np.array(texts[::2])).column("answer") == ["good", "bad"]
    assert "<td>good</td>" in answers._repr_html_()
    assert repr(classifier).endswith("/run': model text-ngrams, data dict, accuracy 1, trained)")
    assert len(answers.to_pandas()) == 3
    assert answers.to_dict()["answer"][2] == "bad"
    unsure = classifier.predict(texts[:1], threshold=1.0)
    assert unsure.columns == ["review", "answer", "probability"]
    assert unsure.column("answer") == ["unsure"]
    frame = answers.to_pandas()[["review"]]
    assert classifier.predict(frame).column("answer") == answers.column("answer")


def test_the_command_answers_alike(classifier: foveal.Run) -> None:
    ours = classifier.predict(["great lovely film"])
    told = json.loads(succeed("predict", classifier.path, "--text", "great lovely film", "--json").out)
    assert told["predictions"][0]["output"] == ours[0]["answer"]
    assert told["predictions"][0]["probability"] == ours[0]["probability"]


def test_a_fit_in_closed_form_has_no_curves(classifier: foveal.Run) -> None:
    assert not (classifier.path / "curves.png").exists()
    with pytest.raises(foveal.UserError, match="finished"):
        classifier.resume()


def test_scores_vectors_and_views(classifier: foveal.Run) -> None:
    scores = classifier.evaluate(reviews(20))
    assert scores.scores["accuracy"] == 1
    assert scores.split == "dict"
    assert classifier.evaluate((*reviews(20).values(),)).scores == scores.scores
    told = json.loads(succeed("evaluate", classifier.path, "--json").out)
    assert classifier.evaluate().values == told
    assert "<table>" in scores._repr_html_()
    vectors = classifier.embed(["great film", "awful film", "great film"])
    assert vectors.shape[0] == 3
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])
    picture = classifier.inspect("confusion", data=None)
    assert picture._repr_png_()[1:4] == b"PNG"
    assert picture.to_dict()["labels"] == ["bad", "good"]
    assert picture.save("confusion.png").is_file()
    assert isinstance(classifier.model, torch.nn.Module)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda run: run.predict("great film"), "run.predict(['great film'])"),
        (lambda run: run.predict("film " * 1000), "run.predict(['film film"),
        (lambda run: run.predict([]), "an empty list"),
        (lambda run: run.predict(["a"], top=0), "give at least 1"),
        (lambda run: run.predict(["a"], top="3"), "top='3': expected a whole number or None"),
        (lambda run: run.predict(["a"], threshold="x"), "threshold='x': expected a number or None"),
        (lambda run: run.generate("a", stop=3), "stop=3: expected a text or a list"),
        (lambda run: UNTYPED.load(None), "path=None: expected a text or a path"),
        (lambda run: UNTYPED.list_models(3), "pattern=3: expected a text"),
        (lambda run: UNTYPED.train(reviews(), settings=["a"]), "settings=['a']: expected a dict or None"),
        (lambda run: UNTYPED.train(reviews(), pretrained="yes"), "expected 'auto' or 'no'"),
        (lambda run: run.inspect("confusio"), "did you mean 'confusion'"),
        (lambda run: run.inspect("confusion", dat=1), "did you mean 'data'"),
        (lambda run: run.generate("a"), "run.predict(DATA)"),
        (lambda run: run.generate(input=["a"]), "give a list of texts first"),
        (lambda run: foveal.train("the cat sat. " * 1000), "a text of 13,000 letters"),
        (lambda run: run.embed([" "]), "text 0"),
        (lambda run: run.predict([np.zeros((4, 4, 3), np.uint8)]), "text"),
        (lambda run: foveal.load("nowhere"), "no such run"),
        (lambda run: foveal.Run(run.path, device="gpu").resume(), 'device="gpu": not a device'),
        (lambda run: foveal.train(reviews(), text="revue", label="mood"), "revue"),
        (
            lambda run: foveal.train(reviews(), text="review", label="mood", settings={"model.wdth": 1}),
            "wdth",
        ),
        (lambda run: foveal.train(reviews(), epochs=1, budget="1m"), "give one of them"),
        (lambda run: foveal.train(reviews(), callbacks=NOT_CALLBACKS), "an object: Callback()"),
        (
            lambda run: foveal.train({"train": reviews(), "valid": reviews()}, valid=reviews()),
            "give valid once",
        ),
        (lambda run: foveal.train({"text": sentences(), "label": ["x"] * 80}), "label"),
    ],
)
@pytest.mark.usefixtures("types_unchecked")
def test_errors_are_exceptions_of_one_line(classifier: foveal.Run, act: Any, message: str) -> None:
    with pytest.raises(foveal.UserError) as error:
        act(classifier)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pickled_run_is_its_path(classifier: foveal.Run) -> None:
    classifier.evaluate(reviews())
    again = pickle.loads(pickle.dumps(classifier))
    assert again.predict(["great film"]).column("answer") == ["good"]


def test_a_language_model_writes() -> None:
    texts = sentences()
    run = foveal.train(
        texts, model="lstm", budget="2steps", run="run", lr=1e-3, seed=3, batch=64, settings=TINY, log="csv"
    )
    assert (run.path / "metrics.csv").exists()
    assert run.path == Path("run")
    assert run.config.training.seed == 3
    assert run.config.optimizer.lr == 1e-3
    assert run.config.data.batch_tokens == 64
    assert run.metrics[0]["kind"] == "step"
    assert run.curves()._repr_png_()[1:4] == b"PNG"
    first = run.generate("the ", tokens=8, seed=1)
    assert first.texts == run.generate("the ", tokens=8, seed=1).texts
    assert str(first).startswith("the ")
    assert "".join(run.generate("the ", tokens=8, seed=1, stream=True)) == str(first)
    stop = first.texts[0][2:4]
    stopped = [run.generate("the ", tokens=8, seed=1, stop=each).texts for each in (stop, [stop])]
    assert stopped[0] == stopped[1] == [first.texts[0].partition(stop)[0]]
    assert len(run.generate(["the ", "a "], tokens=4, samples=2)) == 4
    run.model.train()  # dropout, were it left on
    assert run.generate("the ", tokens=8, seed=1).texts == first.texts
    assert not run.model.training
    with pytest.raises(foveal.UserError, match="temperature=0"):
        run.generate("a", temperature=0.0, samples=2)
    with pytest.raises(foveal.UserError, match="exists"):
        foveal.train(texts, model="lstm", run="run")


def test_images_and_series() -> None:
    draw = np.random.default_rng(0)
    pictures = draw.integers(0, 255, (40, 16, 16, 3)).astype(np.uint8)
    labels = np.arange(40) % 2
    pictures[labels == 1, :, :, 0] = 255
    small = {"data.image.size": 16, "training.evaluate_every": 2}
    values = {"image": [*pictures], "kind": labels == 1, "number": np.arange(40)}
    run = foveal.train(values, label="kind", model="lenet-5", budget="2steps", batch=8, settings=small)
    assert run.config.data.image.batch_size == 8
    answers = run.predict([Image.fromarray(picture) for picture in pictures[:3]])
    assert {*answers.column("answer")} <= {True, False}
    assert answers.column("image") == ["image 0", "image 1", "image 2"]
    assert len(run.predict(pictures[0])) == len(run.predict(Image.fromarray(pictures[0]))) == 1
    scores = run.evaluate(values)
    assert run.evaluate((pictures, labels == 1)).scores == scores.scores
    assert all(str(row["source"]).startswith("dict[") for row in scores.worst)
    assert run.inspect("confusion", data=values).to_dict()["labels"] == ["false", "true"]


def test_series() -> None:
    draw, labels = np.random.default_rng(0), np.arange(40) % 2
    series = draw.normal(size=(40, 12, 2)) + labels[:, None, None]
    values = {"values": series, "kind": labels, "number": np.arange(40)}
    run = foveal.train(values, label="kind", task="series-classification", valid=(series[:4], labels[:4]))
    assert run.config.data.label == "kind"
    answers = run.predict(series)
    assert np.mean(np.array(answers.column("answer")) == labels) > 0.9
    assert run.predict([*series]).column("answer") == answers.column("answer")
    assert run.predict(series[0]).column("answer") == answers.column("answer")[:1]
    assert run.embed(series[:2]).shape[0] == 2
    assert training_reader(start_from=run.path).kind == "series"
    assert run.evaluate(values).scores == run.evaluate((series, labels)).scores


def test_missing_cells_are_skipped_and_named_by_their_index() -> None:
    values = reviews()
    values["review"][7] = None  # type: ignore[call-overload]
    run = foveal.train(values, text="review", label="mood", run="run")
    assert '"dict[7]"' in (run.path / "skipped.jsonl").read_text()


def kills(number: int, function: str) -> Any:
    """Return a context in which a signal comes whenever a function is called."""
    module, _, name = function.rpartition(".")
    original = getattr(import_module(module), name)

    def killed(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), number)
        return original(*arguments, **options)

    return patch(function, killed)


def test_ctrl_c_saves_and_returns_the_run() -> None:
    texts = sentences()
    calls = [0]

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return train_step(*arguments, **options)

    with patch("foveal.training.trainer.train_step", interrupted):
        run = foveal.train(texts, model="lstm", budget="6steps", run="run", settings=TINY)
    assert run.metrics.column("step")[-1] < 6
    stopped = len(run.metrics)
    whole = foveal.train(texts, model="lstm", budget="6steps", run="whole", settings=TINY)
    with (
        pytest.raises(KeyboardInterrupt),
        kills(signal.SIGINT, "foveal.api.training.parts.prepare_run_data"),
    ):
        run.resume()
    with pytest.raises(SystemExit, match="143"), kills(signal.SIGTERM, "foveal.training.trainer.train_step"):
        run.resume()
    run.resume()
    assert len(run.metrics) > stopped
    weights = [run.model.state_dict(), whole.model.state_dict()]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    with pytest.raises(foveal.UserError, match="finished"):
        run.resume()


def test_dry_run_and_short_options() -> None:
    Path("text.txt").write_text("the cat sat on the mat.\n" * 60)
    told = run_command(
        "train", "text.txt", *TINY_MODEL, "--epochs", "2", "--lr", "0.01", "--dry-run", "--json"
    )
    assert told.code == 0, told.err
    result = json.loads(told.out)
    assert result["task"] == "language-model"
    assert result["steps"] > 0
    assert "nothing was trained" in told.last
    assert not Path("runs").exists()


def test_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    run = foveal.train(reviews(), text="review", label="mood", quiet=True)
    assert run.predict(["great film"]).column("answer") == ["good"]
    assert capfd.readouterr() == ("", "")
    told = run_command("evaluate", run.path, "-q", "--json")
    assert (told.code, told.err) == (0, "")
    assert json.loads(told.out)["split"] == "test"
    refused = run_command("evaluate", "nowhere", "--quiet")
    assert refused.err.startswith("foveal: nowhere: no such run")
    assert run_command("evaluate", run.path, "--json").err == ""


def test_in_several_threads() -> None:
    """They draw the same numbers."""
    settings: Any = {
        "model": "text-classification",
        "budget": "2steps",
        "settings": {"model.encoder.width": 16},
    }
    runs: list[foveal.Run] = []

    def train(folder: str) -> None:
        runs.append(foveal.train(reviews(), text="review", label="mood", run=folder, quiet=True, **settings))

    threads = [threading.Thread(target=train, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = ((run.path / "model.safetensors").read_bytes() for run in runs)
    assert first == second


def test_interrupted_before_there_is_a_run() -> None:
    with kills(signal.SIGINT, "foveal.api.training.prepare.measure_cost"), pytest.raises(KeyboardInterrupt):
        foveal.train(reviews(), text="review", label="mood")
    assert not Path("runs").exists()


@pytest.mark.parametrize("labels", [[0, 1], [0.5, 1.0], [True, False], ["0", "1"]])
def test_answers_have_the_type_of_the_labels(labels: list[Any]) -> None:
    values = reviews(40) | {"mood": labels * 20}
    run = foveal.train(values, text="review", label="mood", quiet=True)
    answers = foveal.load(run.path).predict(values["review"], top=2)
    assert answers.column("answer") == values["mood"]
    assert type(answers[0]["top_k"][1]["answer"]) is type(labels[1])
    assert run.predict(values["review"][:1], threshold=1.0).column("answer") == ["unsure"]
