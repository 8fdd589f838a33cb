"""Clips with a label, one for each frame, or a text: from files to a run that is resumed and used."""

import io
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from foveal.inspection.style import CORRECT_COLOR
from foveal.metrics.captions import caption_words, cider
from tests.support.command_line import predictions, refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.small_films import FRAMES, NARRATE, SMALL, film, write_films
from tests.support.video_bytes import encode_video as video

VOLUME = ("model.encoder.layers=2",)


def moving(number: int) -> bytes:
    out = io.BytesIO()
    first, *rest = (Image.fromarray(frame) for frame in film(number)[0])
    first.save(out, "GIF", save_all=True, append_images=rest)
    return out.getvalue()


def train(data: str, *more: object, run: str = "run", steps: int = 60) -> dict[str, Any]:
    return train_run(data, *SMALL, *more, run=run, steps=steps)


def test_a_label_for_each_frame() -> None:
    told = succeed("train", write_films(), *SMALL, *FRAMES, "--budget", "80steps", "--run", "run", "--json")
    result = json.loads(told.out)
    assert "frame-tagging: 3 (across, down, still) for each frame, from 16 x 16 pixels" in told.err
    assert "labeled clips: train " in told.err
    assert "encoder lenet-5, then 1 x gru, width 16; " in told.err
    assert result["accuracy"] > 0.7  # of three labels, each at about a third of the frames
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["loss"] == pytest.approx(result["loss"], rel=1e-5)
    found = predictions("run", "films.npz")
    assert [len(row["output"].split()) for row in found] == np.load("films.npz")["lengths"].tolist()
    assert found[0]["source"] == "films.npz, clip 1"
    strips = json.loads(succeed("inspect", "run", "filmstrip", "--out", "film.png", "--json").out)["clips"]
    assert len(strips) == 6
    assert all(len(one["right"].split()) == len(one["output"].split()) for one in strips)
    with Image.open("film.png") as picture:
        assert picture.size[0] > 400
    Path("one.gif").write_bytes(moving(1))
    told = succeed("inspect", "run", "filmstrip", "--query", "one.gif")
    assert "source   one.gif" in told.out
    assert "right" not in told.out
    data = write_films("some.npz", 8)
    told = succeed("inspect", "run", "filmstrip", "--query", data, "--out", "some.svg", "--json")
    rights = [" ".join(film(number)[1]) for number in range(8)]
    assert [one["right"] for one in json.loads(told.out)["clips"]] == rights
    succeed("inspect", "run", "filmstrip", "--query", "one.gif", "--out", "one.svg")
    assert [CORRECT_COLOR in Path(name).read_text() for name in ("some.svg", "one.svg")] == [True, False]


def test_one_label_by_3d_convolutions() -> None:
    for number in range(60):
        place = Path("films", ("down", "across")[number % 2], f"{number}.gif")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(moving(number))
    told = succeed("train", "films", *SMALL, *VOLUME, "--budget", "40steps", "--run", "run", "--json")
    assert "video-classification: 2 (across, down) from 16 x 16 pixels" in told.err
    assert "encoder 2 x 3D convolution, width 16; " in told.err
    assert json.loads(told.out)["accuracy"] > 0.9
    for row, name in zip(
        predictions("run", "films/down"), ("films/down/0.gif", "films/down/10.gif"), strict=False
    ):
        assert (row["location"], row["source"], row["output"]) == (name, name, "down")
        assert 0.5 < row["probability"] <= 1
    shown = json.loads(succeed("inspect", "run", "filmstrip", "--query", "films", "--json").out)
    assert all(one["right"] == Path(one["source"]).parent.name for one in shown["clips"])
    assert len(shown["clips"]) == 60


def test_videos() -> None:
    for number in range(12):
        place = Path("films", ("down", "across")[number % 2], f"{number}.mp4")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(video(film(number)[0][..., None].repeat(3, -1)))
    Path("films/down/none.mp4").write_bytes(b"")
    train("films", *VOLUME, "data.test_fraction=0.3", steps=2)
    assert json.loads(Path("run/skipped.jsonl").read_text())["location"] == "films, down/none.mp4"
    (found,) = predictions("run", "films/across/1.mp4")
    assert found["source"] == "films/across/1.mp4"
    assert found["output"] in ("down", "across")


@pytest.mark.slow
def test_a_text() -> None:
    result = train(write_films(), *NARRATE, "model.encoder.mixers=gru,attention", "model.encoder.layers=2")
    assert {"chrf", "exact", "cider", "cider_interval"} <= result.keys()
    Path("one.gif").write_bytes(moving(1))
    lines = succeed("generate", "run", "--input", "one.gif").out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("it goes ")
    (found,) = predictions("run", "one.gif")
    assert (found["source"], found["output"]) == ("one.gif", lines[0])
    assert "reads clips: give --input PATH, no --prompt" in refuse("generate", "run", "--prompt", "a")
    picture = ("--input", "one.gif", "--attention", "a.png")
    assert "--attention: run reads clips, for which there is no such figure" in refuse(
        "generate", "run", *picture
    )
    assert "output   it goes " in succeed("inspect", "run", "filmstrip", "--query", "one.gif").out
    films: dict[str, Any] = dict(np.load("films.npz"))
    films["text"][::2] = "a block moves"
    twice: dict[str, Any] = {name: np.concatenate([films[name]] * 2) for name in films if name != "text"}
    np.savez(
        "twice.npz",
        **twice,
        text=[*films["text"], *["it moves"] * 60],
    )
    found = json.loads(succeed("evaluate", "run", "twice.npz", "--json").out)
    outputs = [caption_words(one["output"]) for one in predictions("run", "films.npz")]
    references: dict[bytes, list[list[str]]] = {}
    for clip, *told in zip(films["clips"], films["text"], ["it moves"] * 60, strict=True):
        references.setdefault(clip.tobytes(), []).extend(map(caption_words, told))
    written = dict(zip(map(bytes, films["clips"]), outputs, strict=True))
    assert len(written) < 60
    expected = cider([*references.values()], [*written.values()])
    assert found["cider"] == pytest.approx(expected.value, abs=1e-6)
    assert "cider" not in found["by_length"][0]


@pytest.mark.parametrize("mixers", ["conv", "lstm,attention", "mamba", "rwkv", "s5"])
def test_any_mixer_goes_over_frames(mixers: str) -> None:
    around = ["model.encoder.norm=layer", "model.encoder.residual=true"]
    around += ["model.encoder.s5.blocks=1"] if mixers == "s5" else []
    own = (f"model.encoder.mixers={mixers}", "model.encoder.layers=2")
    train(write_films(count=30), *FRAMES, *around, *own, steps=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [FRAMES, ("--task", "video-classification", *VOLUME), NARRATE], ids=["frames", "volume", "text"]
)
def test_stopped_and_resumed_it_ends_alike(way: tuple[str, ...]) -> None:
    data = write_films()
    train(data, *way, run="whole", steps=20)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", data, *SMALL, *way, "--budget", "20steps", "--run", "run")
    assert told.code == 130
    succeed("resume", "run")
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "whole")]
    assert weights[0] == weights[1]


def test_the_encoder_goes_on_with_another_head() -> None:
    data = write_films()
    train(data, *FRAMES, steps=4)
    more = ("--from", "run", "--task", "video-classification", "--budget", "2steps", "--run", "second")
    assert "the encoder of run; the head is new" in succeed("train", data, *SMALL, *FRAMES, *more).err
    larger = ("--from", "run", "--budget", "2steps", "--run", "third", "data.image.size=20")
    assert "reads other images" in refuse("train", data, *larger)


def test_bad_input() -> None:
    small = (*SMALL, *FRAMES, "--budget", "2steps", "--run", "run")
    data = write_films(count=30)
    assert "give --input" not in refuse("generate", "none")
    assert "no array 'digit' among 'clips'" in refuse(
        "train", data, *SMALL, *VOLUME, "--run", "run", "--task", "video-classification", "data.label=digit"
    )
    alone = write_films("alone.npz", count=30, lengths=np.ones(30, np.int64))
    line = refuse("train", alone, *small)
    assert "no rows to train on (30 can't be used, the first: alone.npz, clip 1: 1 frame, and" in line
    deep = (
        "--model",
        "video-classification",
        "--task",
        "frame-tagging",
        *SMALL,
        "model.encoder.layers=5",
        "--run",
        "run",
    )
    line = refuse("train", data, *deep)
    assert "5 layers halve 16 pixels, or 16 maps, to nothing: lower model.encoder.layers" in line
    line = refuse(
        "train", data, *small, "model.encoder.network=airbench", "model.encoder.network_activation=published"
    )
    assert "model.encoder.network=airbench is fitted to single images" in line
    Path("film.mp4").write_bytes(b"")
    train(data, *FRAMES, steps=2)
    assert "film.mp4: empty; get the file again" in refuse("predict", "run", "film.mp4")
    assert "this run reads no clips" in refuse("inspect", trained_text(), "filmstrip")


def trained_text() -> str:
    """A run that reads no clips."""
    succeed("train", "text.txt", "--model", "rnn", "model.width=16", "--budget", "1steps", "--run", "text")
    return "text"
