"""Captions: from pictures with texts to a run, in each of its forms, that is resumed, measured and used."""

import functools
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from foveal import capture
from foveal.core.progress import no_progress
from foveal.data.text.special_tokens import SpecialTokens
from foveal.inspection.attention.render import images_payload
from foveal.inspection.attention.words import ImageAttention
from foveal.inspection.payload import Payload
from foveal.metrics.captions import cider
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.store.sealed import open_tensors
from foveal.tasks.session import load
from foveal.tasks.shapes import attention
from foveal.tasks.shapes.captions import cider_by_content
from tests.support.captioned_shapes import COLOURS, SMALL, caption, train, write_shapes
from tests.support.command_line import predictions, refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at

PATCHES = tuple(
    f"model.encoder.{one}" for one in ("patch_size=4", "layers=1", "width=32", "attention.heads=2")
)
HEADS = ("model.attention.heads=2", "model.cross.heads=2")
FORMS = {
    "bottleneck": ("--model", "captioning-bottleneck"),
    "attention": (),
    "hard": ("--model", "captioning-hard-attention"),
    "transformer": ("--model", "captioning-transformer", *HEADS),
    "patches": ("--model", "captioning-patches", *HEADS, *PATCHES),
}


class Learnt(NamedTuple):
    """A folder with `shapes` and a `run`, not to be changed; and what training told."""

    folder: Path
    result: dict[str, Any]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Callable[[str], Learnt]:
    """Each form is trained once."""

    @functools.cache
    def learn(form: str) -> Learnt:
        folder = tmp_path_factory.mktemp(form)
        # Patches know nothing of neighbours, and what is seen but once is learnt more slowly.
        count, steps = (240, 100) if form in ("patches", "bottleneck") else (120, 40)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FOVEAL_CACHE", str(cache))
            patch.chdir(folder)
            return Learnt(folder, train(write_shapes(count=count), *FORMS[form], steps=steps))

    return learn


@pytest.fixture
def attending(learnt: Callable[[str], Learnt], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the first that was published, where the test is run."""
    folder = learnt("attention").folder
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_form_learns(form: str, learnt: Callable[[str], Learnt]) -> None:
    folder, result = learnt(form)
    assert result["exact"] > 0.9, result
    assert {"loss", "perplexity", "chrf", "chrf_interval"} <= result.keys()
    low, high = result["cider_interval"] or (result["cider"],) * 2  # none where all resamples are equal
    assert low <= result["cider"] <= high
    assert result["by_length"] == []
    assert "alarm" not in result
    answers = predictions(str(folder / "run"), str(folder / "shapes"))
    assert np.mean([one["output"] == caption(int(Path(one["source"]).stem)) for one in answers]) > 0.9


@pytest.mark.slow
def test_a_run_is_measured_again(attending: Path) -> None:
    first = json.loads(Path("run/samples.jsonl").read_text().splitlines()[0])
    assert ".png -> " in first["text"]
    assert "/" not in first["text"], "the folder may be named in several ways"
    assert Path("run/contact_sheet.png").is_file()
    found = json.loads(succeed("evaluate", "run", "--json").out)
    assert found["split"] == "test"
    other = json.loads(succeed("evaluate", "run", "shapes", "--json").out)
    assert (other["examples"], other["images"]) == (120, 120)
    assert other["exact"] > 0.8


def test_texts_are_written_for_pictures(attending: Path) -> None:
    assert succeed("generate", "run", "--input", "shapes/0.png").out == f"{caption(0)}\n"
    shutil.make_archive("some", "zip", "shapes")
    every = succeed("generate", "run", "--input", "some.zip").out.splitlines()
    assert len(every) == 120
    assert every == [one["output"] for one in predictions("run", "some.zip")]
    found = json.loads(succeed("generate", "run", "--input", "shapes/5.png", "--best", "2", "--json").out)
    assert [one["source"] for one in found["samples"]] == ["shapes/5.png"] * 2
    assert found["samples"][0]["text"] == caption(5)
    drawing = ("generate", "run", "--input", "shapes/7.png", "--temperature", "2", "--samples", "3")
    assert succeed(*drawing).out == succeed(*drawing).out
    assert succeed(*drawing).out.count("\n") == 3
    for wrong in (("--prompt", "a"), ()):
        assert "reads images: give --input PATH" in refuse("generate", "run", *wrong)
    assert "leave out --stop" in refuse("generate", "run", "--input", "shapes/0.png", "--stop", "a")
    assert "metadata.csv: not an image" in refuse("generate", "run", "--input", "shapes/metadata.csv")
    assert "for runs of images" in refuse("evaluate", "run", "--tta", "ten-crop")


@pytest.mark.slow
@pytest.mark.parametrize("form", [form for form in FORMS if form != "bottleneck"])
def test_where_it_looked_is_drawn(
    form: str, learnt: Callable[[str], Learnt], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A panel for the picture and for each word, with what the decoder reads as it writes token by token."""
    monkeypatch.chdir(learnt(form).folder)
    drawn: list[ImageAttention] = []

    def noted(looks: list[ImageAttention]) -> Payload:
        drawn.extend(looks)
        return images_payload(looks)

    monkeypatch.setattr(attention, "images_payload", noted)
    given = ("generate", "run", "--input", "shapes/4.png", "--attention", tmp_path / "out.png")
    assert "out.png" in succeed(*given).err
    with Image.open(tmp_path / "out.png") as picture:
        assert picture.width > picture.height
    (look,) = drawn
    assert (look.words, look.grid) == (tuple(caption(4).split()), (3, 3))
    assert (look.pixels == np.asarray(Image.open("shapes/4.png"))).all()
    read = read_in_use("run", look.pixels, caption(4))
    assert np.allclose(look.weights, read, atol=1e-5)
    assert np.allclose(read.sum(1), 1)
    if form == "hard":
        assert (read.max(1) == 1).all()
    else:
        assert (read.max(1) < 0.999).any()


def read_in_use(run: str, pixels: NDArray[np.uint8], text: str) -> NDArray[np.float32]:
    """How much of each of 9 places (T, 9) a run's decoder reads: the mean over the heads of its layer."""
    loaded = load(run)
    model, inputs = loaded.model, loaded.processor
    statistics, tokenizer = inputs.source.statistics, inputs.target.tokenizer
    seen = (torch.tensor(pixels) - torch.tensor(statistics.mean)) / torch.tensor(statistics.std)
    steps = []
    with torch.inference_mode():
        memory, _ = model.encoder(seen.permute(2, 0, 1)[None].float(), None)
        state = model.head.init_state(memory, 1)
        for token in (SpecialTokens(tokenizer.size).bos, *tokenizer.encode(text)[:-1]):
            with capture(model.head, "*/weights") as found:
                _, state, _ = model.head(torch.tensor([[token]]), state)
            (weights,) = (one for several in found.values() for one in several if one.shape[3] == 9)
            steps.append(weights[0, :, 0].mean(0))
    return torch.stack(steps).numpy()


def test_a_picture_of_several_rows_is_told_once(attending: Path) -> None:
    """And each row gets what was told of its own."""
    run = load("run")
    part, _ = run.task.prepare_held_out("shapes", print)
    rows = [7, 4, 7, 7, 4, 9]
    several = part.examples.subset(rows)
    once = run.task.predicted_texts(part.examples.subset([7, 4, 9]), no_progress)
    with patch.object(
        SequenceToSequenceObjective,
        "beam_decode",
        autospec=True,
        side_effect=SequenceToSequenceObjective.beam_decode,
    ) as write:
        found = run.task.predicted_texts(several, no_progress)
    assert found == [once[place] for place in (0, 1, 0, 0, 1, 2)]
    assert len({*once}) == 3
    assert [len(call.args[1].rows) for call in write.call_args_list] == [3]


@pytest.mark.slow
def test_what_can_not_be_drawn(attending: Path, learnt: Callable[[str], Learnt]) -> None:
    given = ("--input", "shapes/4.png", "--attention")
    assert "is drawn as .png, .svg, .pdf, .html" in refuse("generate", "run", *given, "a.json")
    told = run_command("generate", "run", *given, "a.png", "--head", "3.1")
    assert "--head 3.1: there is no such head; there are 1.1" in told.last
    told = run_command("generate", learnt("bottleneck").folder / "run", *given, "a.png")
    assert (told.code, told.out) == (2, "")
    assert "no attention to show" in told.err


def test_all_texts_of_a_picture_are_references_together() -> None:
    """Rows of a picture that is there three times, wherever they stand and whatever it is called."""
    texts = ["a dog runs home", "two red birds", "the dog is going home", "a cat", "a dog goes home"]
    contents = ["dog", "birds", "dog", "cat", "dog"]
    found = cider_by_content(
        contents, texts, ["A dog runs!", "two birds", "A dog runs!", "a cow", "A dog runs!"]
    )
    dogs = ["a dog runs home", "the dog is going home", "a dog goes home"]
    references = [[text.split() for text in dogs], [["two", "red", "birds"]], [["a", "cat"]]]
    expected = cider(references, [["a", "dog", "runs"], ["two", "birds"], ["a", "cow"]])
    assert found.per_example.tolist() == expected.per_example.tolist()
    assert found.signature == expected.signature
    assert "nrefs:var" in found.signature


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_stop_and_a_resume_end_as_if_there_had_been_none(form: str) -> None:
    write_shapes(count=60)
    given = (*FORMS[form], "data.augment.crop=pad", "data.augment.flip=true", "training.ema_decay=0.9")
    given = (*given, "model.dropout=0.1", "training.evaluate_every=4")
    train("shapes", *given, run="whole", steps=8)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", "shapes", *SMALL, *given, "--budget", "8steps", "--run", "parts")
    assert told.code == 130
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_an_encoder_that_has_learnt_labels(learnt: Callable[[str], Learnt]) -> None:
    """Its weights and channels' statistics are taken, and stay as they are where they are frozen."""
    shapes = learnt("attention").folder / "shapes"
    for number in range(60):
        colour = [*COLOURS][number % 3]
        Path("labelled", colour).mkdir(parents=True, exist_ok=True)
        shutil.copy(shapes / f"{number}.png", f"labelled/{colour}")
    images = [
        one
        for one in SMALL
        if one.startswith(("data.image", "data.valid_fraction", "data.test_fraction", "schedule"))
    ]
    train_run("labelled", *images, run="labels", steps=4)
    told = succeed(
        *("train", shapes, *SMALL, "--model", "captioning", "--from", "labels", "training.freeze=encoder"),
        *("--budget", "4steps", "--run", "run"),
    )
    assert "the encoder of labels; the head is new" in told.err
    kept, given = (
        open_tensors(Path(run, "model.safetensors").read_bytes(), run)[0] for run in ("run", "labels")
    )
    own = [name for name in given if name.startswith("encoder.") and "num_batches" not in name]
    assert len(own) > 20
    assert all(torch.equal(kept[name], given[name]) for name in own)
    assert Path("run/inputs/channels.json").read_bytes() == Path("labels/inputs/channels.json").read_bytes()
