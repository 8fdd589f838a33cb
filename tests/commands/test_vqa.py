"""Questions about images: from pictures with questions to a run, answered in each of the three ways."""

import csv
import json
import math
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch

from foveal.tasks.session import load
from foveal.tasks.vqa.answer_targets import IGNORE_INDEX
from foveal.training.evaluate import evaluate
from tests.support.captioned_shapes import COLOURS, SHAPES
from tests.support.command_line import predictions, refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.saved_weights import saved_weights
from tests.support.shape_questions import (
    SMALL,
    check_same_image_encoder,
    rows_of,
    train,
    write_questions,
    write_table,
)

WAYS = {"vqa": "accuracy", "vqa-generate": "exact", "vqa-multiple-choice": "accuracy"}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_each_way_learns(way: str) -> None:
    write_questions("shapes", "choices", "history")
    result = train("shapes", "--task", way, steps=60)
    assert result[WAYS[way]] > 0.9, result
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again[WAYS[way]] == pytest.approx(result[WAYS[way]])
    found = predictions("run", "shapes")
    assert [one["source"] for one in found[:2]] == [
        "shapes/0.png: what colour is it?",
        "shapes/0.png: what shape is it?",
    ]
    right = [row["answer"] for number in range(120) for row in rows_of(number)]
    assert sum(one["output"] == answer for one, answer in zip(found, right, strict=True)) > 0.9 * len(right)
    shutil.make_archive("some", "zip", "shapes")
    zipped = {"location": "some.zip/", "source": "some.zip/"}
    assert predictions("run", "some.zip") == [
        one | {name: one[name].replace("shapes/", folder) for name, folder in zipped.items()} for one in found
    ]


@pytest.mark.slow
def test_what_was_said_before_can_be_hidden() -> None:
    write_questions("shapes", "history")
    shown = train("shapes", steps=60)
    hidden = train("shapes", "data.history=none", run="hidden", steps=30)
    assert shown["accuracy"] > 0.9
    assert hidden["accuracy"] < 0.85
    write_table("shapes", 120, "file_name", "question", "answer")
    assert "no column with the history" in refuse("predict", "run", "shapes")
    assert len(predictions("hidden", "shapes")) == 360


@pytest.mark.slow
def test_a_talk_about_one_picture() -> None:
    """Each question is answered as that row of a table whose history are the ones before it, answered."""
    write_questions("shapes", "history", count=40)
    train("shapes", steps=20)
    train("shapes", "--task", "vqa-generate", run="replies", steps=4)
    questions = ["what colour is it?", "which one was it?", "what  shape is it?"]
    asking = [part for question in questions for part in ("--question", question)]
    for run in ("run", "replies"):
        talk = predictions(run, "shapes/7.png", *asking)
        assert [one["source"] for one in talk] == [
            f"shapes/7.png: {' '.join(question.split())}" for question in questions
        ]
        said = [f"{question} {one['output']}." for question, one in zip(questions, talk, strict=True)]
        Path("talk").mkdir(exist_ok=True)
        shutil.copy("shapes/7.png", "talk")
        with Path("talk/metadata.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["file_name", "question", "history"])
            table.writerows(["7.png", question, " ".join(said[:at])] for at, question in enumerate(questions))
        rows = predictions(run, "talk")
        assert [one["output"] for one in rows] == [one["output"] for one in talk]
    written = json.loads(succeed("generate", "replies", "--input", "talk", "--best", "2", "--json").out)
    assert [one["text"] for one in written["samples"]][::2] == [one["output"] for one in rows]
    told = refuse("generate", "replies", "--input", "talk", "--attention", "a.png")
    assert "reads images with questions, for which there is no such figure" in told
    assert "--question: empty; give the text of a question" in refuse(
        "predict", "run", "shapes/7.png", "--question", " "
    )
    assert "nothing.png: no such file" in refuse("predict", "run", "nothing.png", "--question", "what?")


def test_questions_are_for_runs_that_answer_them() -> None:
    write_questions("shapes", "choices", count=40)
    train_run(
        "shapes",
        "--task",
        "image-classification",
        "data.image.size=12",
        "data.label=answer",
        run="labels",
        steps=1,
    )
    train("shapes", "--task", "vqa-multiple-choice", steps=1)
    train("shapes", "--task", "vqa", run="answers", steps=1)
    asking = ("shapes/7.png", "--question", "what colour is it?")
    assert "this run reads no questions (task image-classification); leave out --question" in refuse(
        "predict", "labels", *asking
    )
    assert "give at least two --choice" in refuse("predict", "run", *asking, "--choice", "red")
    assert "leave out --choice" in refuse("predict", "answers", *asking, "--choice", "a", "--choice", "b")
    assert "--choice needs a --question" in refuse("predict", "run", "shapes", "--choice", "red")
    (found,) = predictions("run", *asking, "--choice", "red", "--choice", "square")
    assert found["output"] in ("red", "square")


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_as_one_that_was_not() -> None:
    write_questions("shapes", "choices", "history", count=40)
    for way in WAYS:
        train("shapes", "--task", way, "data.augment.crop=pad", run=way, steps=8)
        with act_at("first steps", lambda: os.kill(os.getpid(), signal.SIGINT)):
            stopped = run_command(
                *("train", "shapes", *SMALL, "--task", way, "data.augment.crop=pad"),
                *("--budget", "8steps", "--run", f"{way}-2"),
            )
        assert stopped.code == 130
        succeed("resume", f"{way}-2")
        first, second = saved_weights(way), saved_weights(f"{way}-2")
        assert all(tensor.equal(second[name]) for name, tensor in first.items())


def test_answers_never_seen_are_told_and_wrong() -> None:
    write_questions(count=40)
    train("shapes", steps=2)
    text = Path("shapes/metadata.csv").read_text()
    Path("shapes/metadata.csv").write_text(text.replace("red", "scarlet"))
    told = succeed("evaluate", "run", "shapes", "--json")
    unseen = sum(row["answer"] == "red" for number in range(40) for row in rows_of(number))
    assert f"{unseen} of 120 answers did not occur in training, and count as wrong" in told.err
    found = json.loads(told.out)
    assert found["accuracy"] <= 1 - unseen / 120
    lines = Path("shapes/metadata.csv").read_text().splitlines()
    Path("shapes/metadata.csv").write_text("\n".join(line for line in lines if ",scarlet" not in line))
    others = json.loads(succeed("evaluate", "run", "shapes", "--json").out)
    assert others["loss"] == pytest.approx(found["loss"]), "what can't be chosen has no loss"


def test_where_no_answer_is_known_nothing_is_measured() -> None:
    """A part that was given is refused; one that was cut off has no loss, and so no best weights."""
    write_questions(count=40)
    write_questions("others", count=4)
    text = Path("others/metadata.csv").read_text()
    for answer in (*COLOURS, *SHAPES):
        text = text.replace(f",{answer}\n", f",{answer.title()}\n")
    Path("others/metadata.csv").write_text(text)
    told = run_command("train", "shapes", *SMALL, "--task", "vqa", "--valid", "others", "--budget", "2steps")
    assert told.code == 2
    assert "foveal: others: no answer is one of training (5 (bar, blue, green, post, red))" in told.err
    assert "the first is Red: spell the answers as in training" in told.err
    assert not Path("runs").exists()
    train("shapes", steps=2)
    assert "others: no answer is one of training" in refuse("evaluate", "run", "others")
    run = load("run")
    part, _ = run.task.prepare_held_out("shapes", print)
    part.examples.columns["label"][:] = IGNORE_INDEX
    found = evaluate(run.model, run.objective, run.task.example_batches(part.examples))
    assert math.isnan(found["loss"])
    assert found["accuracy"] == 0


def test_experts_that_read_the_choices_are_balanced_too() -> None:
    """A row's sums are those of its question and of each of its own choices."""
    write_questions("shapes", "choices", count=20)
    train("shapes", "--task", "vqa-multiple-choice", "task.question.feedforward=moe", steps=1)
    run = load("run")
    part, _ = run.task.prepare_held_out("shapes", print)
    batch = run.task.example_batches(part.examples).batch(0, 0)
    with torch.no_grad():
        found = run.objective(batch, None)[0].terms["balance"]
        _, asked = run.model.encode(batch.columns, batch.lengths)
        _, chosen = run.model.choices(batch.columns["choice"], batch.lengths["choice"])
    rows = zip(batch.columns["choices"].tolist(), batch.lengths["choices"].tolist(), strict=True)
    own = sum(chosen["balance"][choice] for row, count in rows for choice in row[:count])
    assert float(own) > 0
    assert float(found.sum) == pytest.approx(float(asked["balance"].sum() + own))


@pytest.mark.slow
def test_a_run_is_where_another_begins() -> None:
    """One of images lends its network and the statistics of the channels; one of questions all."""
    write_questions("shapes", "history", count=40)
    train("shapes", steps=2)
    told = succeed("train", "shapes", "--from", "run", "--budget", "2steps", "--run", "more")
    assert "all weights of run" in told.err
    few = ("data.image.size=12", "data.label=answer", "training.evaluate_every=20")
    train_run("shapes", "--task", "image-classification", *few, run="labels", steps=2)
    ask = ("--model", "vqa", *SMALL, "--budget", "1steps", "optimizer.lr=1e-20", "--run", "lent")
    told = succeed("train", "shapes", "--from", "labels", *ask)
    assert "the encoder of labels; the head is new" in told.err
    check_same_image_encoder("labels", "lent")


def test_a_first_layer_begins_from_the_images() -> None:
    """Airbench's, whose whitening makes channels of variance 1 without correlation."""
    write_questions(count=40)
    train_run("shapes", *SMALL, "model.encoder.network=airbench", "data.image.size=31", run="run", steps=1)
    (whitening,) = (
        tensor
        for name, tensor in saved_weights("run").items()
        if "parts.source.blocks.0" in name and tensor.ndim == 4
    )
    assert whitening.std() > 0.1


def test_what_can_not_be_is_said_in_a_line() -> None:
    write_questions("shapes", "choices", count=40)
    few = ("train", "shapes", *SMALL, "--budget", "2steps", "--run", "run")
    assert "of one view of one image" in refuse(*few, "data.augment.mixup=0.2")
    assert "no column 'q' among" in refuse(*few, "data.question=q", "--task", "vqa")
    assert "task.label_smoothing" in refuse(*few, "task.label_smoothing=0.1")
    for wrong in ("task.fusion.attention.heads=5", "task.question.mixers=attention,nothing"):
        assert refuse(*few, wrong)
    for section in ("task.fusion", "task.question"):
        assert f"{section}.pooling=cls: only patches have a class token" in refuse(
            *few, f"{section}.pooling=cls"
        )
