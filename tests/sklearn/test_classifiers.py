"""The classifiers in scikit-learn's own machinery, and what they keep of a fit."""

import json
import os
import pickle
import shutil
import signal
import sys
from importlib import reload
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import foveal
import foveal.sklearn
from foveal.sklearn import ImageClassifier, SeriesClassifier, TextClassifier
from foveal.sklearn.base import RunClassifier
from foveal.sklearn.targets import read_targets
from foveal.store.cache import cache_folder
from foveal.training.trainer import Trainer

DRAW = np.random.default_rng(0)
WORDS = (["awful", "dull", "bad", "boring"], ["great", "lovely", "fine", "superb"])
LABELS = np.arange(40) % 2
TEXTS = [" ".join(DRAW.choice(WORDS[label], 4)) + " film" for label in LABELS]
SERIES = DRAW.normal(size=(40, 12)) + LABELS[:, None]
IMAGES = DRAW.integers(0, 255, (24, 12, 12, 3)).astype(np.uint8)
IMAGES[LABELS[:24] == 1, :, :, 0] = 255
SMALL_IMAGES = {"data.image.size": 12}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> TextClassifier:
    return TextClassifier(run=tmp_path_factory.mktemp("runs") / "mood").fit(TEXTS, LABELS)


def parts_of(classifier: RunClassifier) -> list[str]:
    """Return the splits of the run."""
    return [*json.loads((classifier.run_.path / "run.json").read_text())["data"]["facts"]["parts"]]


def test_probabilities_are_those_of_the_run(texts: TextClassifier) -> None:
    probabilities = texts.predict_proba(TEXTS[:3])
    rows = texts.run_.predict(TEXTS[:3], top=2)
    for row, values in zip(rows, probabilities, strict=True):
        told = {each["answer"]: each["probability"] for each in row["top_k"]}
        assert values == pytest.approx([told["0"], told["1"]], abs=1e-5)
    assert probabilities.sum(1) == pytest.approx(1, abs=1e-12)
    assert texts.score(TEXTS, LABELS) == 1
    assert texts.run_.path.name == "mood"


def test_no_row_is_held_out(texts: TextClassifier) -> None:
    assert parts_of(texts) == ["train"]


@pytest.mark.parametrize(
    "labels",
    [
        # A run would take these for numbers, for several labels, for missing ones, and two for one.
        np.repeat(np.arange(20) * 1000, 2),
        np.array(["a", "a,b", "b", "None"])[np.arange(40) % 4],
        np.array(["nan", " nan"])[LABELS],
        np.array(["", "zeta "])[LABELS],
    ],
    ids=["numbers", "joined", "missing", "spaces"],
)
def test_labels_keep_their_type(labels: Any) -> None:
    fitted = TextClassifier().fit(TEXTS, labels)
    assert fitted.classes_.dtype == fitted.predict(TEXTS[:2]).dtype == labels.dtype
    assert {*fitted.classes_.tolist()} == {*labels.tolist()}
    assert fitted.predict_proba(TEXTS[:2]).shape == (2, len(fitted.classes_))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["bad", "good"])[LABELS],
        np.array(["bad", "good"], object)[LABELS],
        LABELS - 1,
        LABELS * 1.0,
        LABELS == 1,
        [*LABELS],
    ],
)
def test_names_of_classes(labels: Any) -> None:
    targets = read_targets(labels, 40, TextClassifier())
    assert targets.classes.dtype == np.asarray(labels).dtype
    assert targets.names == [*map(str, sorted({*np.asarray(labels).tolist()}))]
    assert targets.labels == [*map(str, labels)]


@pytest.mark.parametrize("kind", [list, np.array, pandas.Series, polars.Series])
def test_texts_of_any_library(texts: TextClassifier, kind: Any) -> None:
    assert (texts.predict(kind(TEXTS[:3])) == LABELS[:3]).all()
    assert (texts.predict(pandas.DataFrame({"text": TEXTS[:3]})) == LABELS[:3]).all()


def test_series() -> None:
    fitted = SeriesClassifier().fit(SERIES, LABELS)
    assert (fitted.n_features_in_, fitted.n_channels_in_) == (12, 1)
    assert fitted.score(torch.tensor(SERIES), LABELS) > 0.9
    three = np.stack([SERIES, SERIES], 2)
    assert fitted.fit(three, LABELS).predict(three).shape == (40,)
    assert (fitted.n_features_in_, fitted.n_channels_in_) == (12, 2)
    ragged = [series[: 6 + row % 4] for row, series in enumerate(SERIES)]
    assert fitted.fit(np.array(ragged, object), LABELS).score(ragged, LABELS) > 0.9
    assert not hasattr(fitted, "n_features_in_")
    assert fitted.predict(SERIES[:2]).shape == (2,)


def test_images_of_any_size_and_mode() -> None:
    modes = ("RGB", "L", "RGBA", "P", "CMYK")
    pictures = [
        Image.fromarray(image).resize((12 + row, 12)).convert(modes[row % 5])
        for row, image in enumerate(IMAGES)
    ]
    fitted = ImageClassifier(pretrained="no", settings=SMALL_IMAGES).fit(pictures, LABELS[:24])
    assert fitted.predict(pictures[:3]).shape == (3,)
    assert fitted.predict([np.asarray(picture.convert("RGB")) for picture in pictures[:3]]).shape == (3,)


def test_pixels_are_read_as_in_fit() -> None:
    floats = IMAGES / 255
    fitted = ImageClassifier(pretrained="no", settings=SMALL_IMAGES).fit(floats, LABELS[:24])
    expected = fitted.predict_proba(IMAGES)
    assert np.array_equal(fitted.predict_proba(floats), expected)
    assert np.array_equal(fitted.predict_proba(torch.tensor(floats).movedim(3, 1)), expected)
    with pytest.raises(foveal.UserError, match=r"row 0: pixels up to 25., but in fit 1 is white"):
        fitted.predict(floats * 255)
    dark = ImageClassifier(pretrained="no", settings=SMALL_IMAGES).fit(floats * 255, LABELS[:24])
    assert np.array_equal(dark.predict_proba(IMAGES[:2] // 200 * 1.0), dark.predict_proba(IMAGES[:2] // 200))


def test_in_pipelines_and_searches() -> None:
    lower = FunctionTransformer(lambda values: [value.lower() for value in values])
    pipeline = make_pipeline(lower, TextClassifier(model="text-ngrams"))
    grid = {
        "textclassifier__settings": [{"model.encoder.ngram_length": 1}, {"model.encoder.ngram_length": 3}]
    }
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit([*map(str.upper, TEXTS)], LABELS)
    assert search.best_score_ == 1
    assert (search.predict([*map(str.upper, TEXTS)]) == LABELS).all()
    longer = search.best_estimator_["textclassifier"].run_.config.model.encoder.ngram_length
    assert {"model.encoder.ngram_length": longer} == search.best_params_["textclassifier__settings"]
    assert cross_val_score(TextClassifier(), TEXTS, LABELS, cv=2, scoring="roc_auc").tolist() == [1, 1]


@pytest.mark.slow
def test_in_processes() -> None:
    scores = cross_val_score(TextClassifier(run="mood"), TEXTS, LABELS, cv=4, n_jobs=2)
    assert scores.tolist() == [1, 1, 1, 1]
    assert {path.name for path in Path().iterdir()} == {"mood", "mood-2", "mood-3", "mood-4"}


def test_a_clone_takes_the_next_name(texts: TextClassifier) -> None:
    copy = clone(texts)
    assert not hasattr(copy, "run_")
    assert copy.get_params() == texts.get_params()
    assert copy.fit(TEXTS, LABELS).run_.path == texts.run_.path.with_name("mood-2")


def test_a_folder_that_another_process_creates(monkeypatch: pytest.MonkeyPatch) -> None:
    from foveal.sklearn import runs

    free, taken = runs._free_path, Path("mood").absolute()

    def once_taken(path: Path) -> Path:
        if taken.exists():
            return free(path)
        taken.mkdir()
        return path

    monkeypatch.setattr(runs, "_free_path", once_taken)
    assert TextClassifier(run="mood").fit(TEXTS, LABELS).run_.path == Path("mood-2").absolute()


def test_a_pickle_is_a_path(texts: TextClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = TextClassifier(run="mood").fit(TEXTS, LABELS)
    content = pickle.dumps(fitted)
    assert len(content) < 2000
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert np.array_equal(pickle.loads(content).predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    run = Path("../mood").resolve()
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(foveal.UserError, match=r"mood: the run of this estimator has changed since") as error:
        pickle.loads(content)
    assert "\n" not in str(error.value)
    shutil.rmtree(run)
    for act in (lambda: pickle.loads(content), lambda: pickle.dumps(fitted)):
        with pytest.raises(
            foveal.UserError, match=r"mood: the run of this estimator is gone; restore the run"
        ):
            act()
    assert pickle.loads(pickle.dumps(clone(fitted))).run == "mood"


def test_rows_that_can_not_be_read() -> None:
    with pytest.warns(UserWarning, match=r"2 of 42 rows of X can't be used, all in .*skipped.jsonl"):
        fitted = TextClassifier().fit([*TEXTS, "", " "], [*LABELS, 1, 1])
    with pytest.warns(UserWarning, match=r"X, rows 1, 2: empty: .*; predicted by the frequencies"):
        probabilities = fitted.predict_proba([TEXTS[0], "", "日本"])
    assert probabilities[1:].tolist() == [fitted.class_frequencies_.tolist()] * 2
    assert fitted.class_frequencies_.tolist() == [20 / 42, 22 / 42]


def test_quiet_unless_verbose(capfd: pytest.CaptureFixture[str]) -> None:
    fitted = SeriesClassifier().fit(SERIES, LABELS)
    fitted.predict(SERIES)
    assert capfd.readouterr() == ("", "")
    fitted.set_params(verbose=1).fit(SERIES, LABELS)
    assert "minirocket" in capfd.readouterr().err


def test_the_cache_keeps_runs_and_no_values_of_predict(cache: Path) -> None:
    fitted = SeriesClassifier().fit(SERIES, LABELS)
    assert fitted.run_.path.parent == cache_folder() / "sklearn"
    before = {*cache.rglob("*")}
    fitted.predict(SERIES + 1)
    assert {*cache.rglob("*")} == before


def test_ctrl_c_ends_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []

    def interrupted(trainer: Trainer, signals: Any) -> None:
        fits.append(trainer)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(TextClassifier(), TEXTS, LABELS, cv=2)
    assert len(fits) == 1


def test_parameters_reach_the_training() -> None:
    settings = {"model": {"encoder": {"ngram_length": np.int64(2)}}, "data.test_fraction": 0.2}
    estimator = TextClassifier(model="text-ngrams", batch=4096, settings=settings)
    fitted = estimator.set_params(seed=np.int64(5)).fit(TEXTS, LABELS)  # as a random search does
    config = fitted.run_.config
    assert (config.training.seed, config.data.batch_tokens, config.model.encoder.ngram_length) == (5, 4096, 2)
    assert parts_of(fitted) == ["train", "test"]


def test_a_network_is_trained() -> None:
    settings = {"model.encoder.width": 8, "model.encoder.layers": 1, "data.valid_fraction": 0.3}
    fitted = SeriesClassifier(model="series-classification", budget="2steps", settings=settings)
    assert fitted.fit(SERIES, LABELS).predict_proba(SERIES).shape == (40, 2)
    assert parts_of(fitted) == ["train", "valid"]
    assert fitted.run_.metrics.column("step")[-1] == 2


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in [name for name in sys.modules if name.startswith(("sklearn.", "foveal.sklearn."))]:
        monkeypatch.delitem(sys.modules, name)
    line = r"^foveal.sklearn needs the package scikit-learn: pip install 'foveal\[sklearn\]'$"
    with pytest.raises(ImportError, match=line) as error:
        reload(foveal.sklearn)
    assert isinstance(error.value, foveal.UserError)
    monkeypatch.undo()
    reload(foveal.sklearn)
