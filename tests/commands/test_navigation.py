"""Maps with instructions: from a file to a run that walks, is resumed, trained on by REINFORCE, and drawn."""

import json
import os
import signal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from PIL import Image

from foveal.tasks.navigation.generated_episodes import random_episode
from foveal.tasks.navigation.grid_world import THINGS
from tests.support.command_line import TINY_MODEL, predictions, refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.killed_runs import check_killed_run

SMALL = (
    "model.width=16",
    "model.encoder.width=16",
    "model.encoder.embedding_width=8",
    "data.batch_tokens=400",
    "training.evaluate_every=10",
    "schedule.warmup_steps=2",
)


def write_maps(path: str = "maps.jsonl", count: int = 50) -> list[dict[str, Any]]:
    chance = Random(0)
    rows = [random_episode(chance) for _ in range(count)]
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return rows


def write_corridors(path: str = "corridors.jsonl", count: int = 60) -> None:
    """Goals a step away or two: who walks at random arrives now and then. No map is there twice."""
    with Path(path).open("w") as file:
        for number in range(count):
            first, last = ([*THINGS][place] for place in divmod(number, len(THINGS)))
            row = {
                "map": ["#####", f"{first}...{last}", "#####"],
                "instruction": ("one step on", "two steps on")[number % 2],
                "start": [1, 1, "east"],
                "path": f"{'forward ' * (1 + number % 2)}stop",
            }
            file.write(f"{json.dumps(row)}\n")


def steps_of(run: str) -> list[dict[str, Any]]:
    """What was noted of each step."""
    noted = map(json.loads, Path(run, "metrics.jsonl").read_text().splitlines())
    return [one for one in noted if one["kind"] == "step"]


@pytest.mark.slow
def test_maps_are_learnt_walked_and_drawn() -> None:
    rows = write_maps()
    result = train_run("maps.jsonl", *SMALL, run="run", steps=12)
    assert {"loss", "success", "spl", "spl_interval", "moves", "by_length"} <= result.keys()
    assert result["steps"] == 12
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert [again[name] for name in ("loss", "spl", "moves")] == [
        pytest.approx(result[name], rel=1e-5) for name in ("loss", "spl", "moves")
    ]
    assert json.loads(succeed("evaluate", "run", "maps.jsonl", "--json").out)["examples"] == len(rows)
    asked = [{name: row[name] for name in ("map", "instruction", "start")} for row in rows[:7]]
    Path("asked.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    found = predictions("run", "asked.jsonl")
    assert [one["source"] for one in found] == [row["instruction"] for row in asked]
    assert all({*one["output"].split()} <= {"left", "right", "forward", "stop"} for one in found)
    shown = json.loads(succeed("inspect", "run", "navigation", "--out", "paths.png", "--json").out)
    assert 0 < len(shown["episodes"]) <= 6
    assert all(one["right"].endswith("stop") for one in shown["episodes"])
    with Image.open("paths.png") as picture:
        assert picture.size[0] > 300
    shown = json.loads(succeed("inspect", "run", "navigation", "--query", "asked.jsonl", "--json").out)
    assert [(one["moves"], one["right"]) for one in shown["episodes"]] == [
        (one["output"], None) for one in found
    ]
    told = succeed("inspect", "run", "navigation", "--query", "asked.jsonl", "--out", "paths.png")
    assert told.out.count("instruction") == 7
    mixed = [*asked[:2], *rows[2:4], rows[4] | {"path": "no move"}]
    Path("mixed.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in mixed))
    told = succeed("inspect", "run", "navigation", "--query", "mixed.jsonl", "--out", "paths.png", "--json")
    rights = [one["right"] for one in json.loads(told.out)["episodes"]]
    assert rights == [None, None, rows[2]["path"], rows[3]["path"], None]


@pytest.mark.slow
def test_reinforce_goes_on_from_imitation() -> None:
    write_corridors()
    first = train_run("corridors.jsonl", *SMALL, run="first", steps=12)
    assert "reward" not in first
    given = (
        "corridors.jsonl",
        "--from",
        "first",
        "task.supervision=reinforce",
        "--run",
        "second",
        "--budget",
        "6steps",
    )
    told = succeed("train", *given, "optimizer.lr=1e-3", "--json")
    result = json.loads(told.out)
    assert 0 < result["spl"] <= result["success"]
    assert result["reward"] == pytest.approx(result["spl"], abs=1e-6)
    assert result["loss"] == pytest.approx(1 - result["spl"], abs=1e-6)
    assert "all weights of first" in told.err
    assert "of the reward missed" in told.err
    assert "nats" not in told.err
    again = json.loads(succeed("evaluate", "second", "--json").out)
    assert again["success"] == result["success"]
    seen = json.loads(succeed("inspect", "second", "activations", "--json").out)["activations"]["trained"]
    assert seen[0]["gradient"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["imitation", "reinforce"])
def test_a_stop_and_a_resume_end_as_if_there_had_been_none(way: str) -> None:
    """The moves that are drawn are a function of (seed, step)."""
    write_corridors()
    given = (*SMALL, f"task.supervision={way}")
    train_run("corridors.jsonl", *given, run="whole", steps=14)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", "corridors.jsonl", *given, "--budget", "14steps", "--run", "parts")
    assert told.code == 130
    stopped = len(steps_of("parts"))
    succeed("resume", "parts")
    noted = [
        [(one["loss"], one["gradient_norm"], one.get("reward")) for one in steps_of(run)]
        for run in ("parts", "whole")
    ]
    assert noted[0] == noted[1]
    assert any(norm > 0 and reward != 0 for _, norm, reward in noted[0][stopped:]), "nobody arrived"
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


@pytest.mark.slow
def test_what_can_not_be_used_is_a_line() -> None:
    rows = write_maps()
    Path("bare.jsonl").write_text("".join(f"{json.dumps(row | {'path': ''})}\n" for row in rows))
    assert "line 1: its path is no text of moves" in refuse("train", "bare.jsonl", *SMALL)
    for row in rows[20:]:
        del row["path"]
    Path("some.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    train_run("some.jsonl", *SMALL, run="some", steps=1)
    skipped = Path("some/skipped.jsonl").read_text().splitlines()
    assert len(skipped) == 30
    assert "some.jsonl, line 21" in skipped[0]
    assert "no column 'path'" in skipped[0]
    assert "never reads the source" in refuse("train", "maps.jsonl", *SMALL, "model.mixers=gru")
    assert "task.label_smoothing: the moves are" in refuse(
        "train", "maps.jsonl", *SMALL, "task.label_smoothing=0.1"
    )
    line = refuse("train", "maps.jsonl", *SMALL, "data.augment.flip=true")
    assert "data.augment.flip is not read, since task.name=navigation" in line
    Path("maps.txt").write_text("from one end to the other\n" * 200)
    assert "unknown key 'task.supervision'" in refuse("train", "maps.txt", "task.supervision=reinforce")
    Path("text.txt").write_text("hello there\n" * 80)
    train_run("text.txt", *TINY_MODEL, "--model", "rnn", run="text", steps=1)
    assert "this run follows no instructions (task language-model)" in refuse("inspect", "text", "navigation")
    train_run("maps.jsonl", *SMALL, run="run", steps=1)
    assert "ends in .png" in refuse("inspect", "run", "navigation", "--out", "paths.gif")
    assert "foveal predict run DATA" in refuse("generate", "run")


@pytest.mark.slow
def test_killed_behind_a_checkpoint_it_ends_alike(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (*SMALL, "task.supervision=reinforce")
    check_killed_run(here, monkeypatch, write_corridors, "corridors.jsonl", settings)
