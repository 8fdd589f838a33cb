"""`foveal compare`: models trained on equal terms, whatever comes between, and refusals in one line."""

import json
import os
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import foveal
from foveal.studies.trials.process import TrialEnd, WatchRecord, train_in_process
from tests.support.command_line import refuse, run_command, succeed
from tests.support.compare_command import TINY, compared
from tests.support.plugin_files import write_cell
from tests.support.registries import restored_registries
from tests.support.study_trainings import TRAIN_IN_PROCESS, train_here

SHORT = ("--match", "none", "--budget", "6steps", "--run", "study")


def shuffled(preset: str, name: str, *settings: str) -> str:
    """Write the settings of a preset into a TOML file of another name."""
    Path(name).write_text(succeed("train", *TINY, *settings, "--model", preset, "--print-config").out)
    return name


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_from_one_command_to_a_report_and_on_with_more_seeds() -> None:
    models = f"lstm,{shuffled('lstm', 'twin.toml')}"
    result = compared(*TINY, "--models", models, *SHORT)
    assert [model["model"] for model in result["models"]] == ["lstm", "twin"]
    losses = [[run["scores"]["loss"] for run in model["runs"]] for model in result["models"]]
    assert losses[0] == losses[1]  # equal weights, batches and rows, whatever the name
    assert len({*losses[0]}) == 3
    (difference,) = result["differences"]
    assert (difference["verdict"], difference["difference"]) == ("indistinguishable", 0)
    assert result["verdict"] == "no model is told apart from lstm, which has the lowest mean loss"
    for run in result["models"][0]["runs"]:
        assert foveal.load(run["run"]).evaluate()["loss"] == pytest.approx(run["scores"]["loss"])
    assert sorted(path.suffix for path in Path("study").glob("report.*")) == [".html", ".json", ".png"]


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_goes_on_with_more_seeds() -> None:
    compared(*TINY, "--models", (models := "lstm,gru"), *SHORT)
    before = {path: path.stat().st_mtime_ns for path in Path("study").glob("*/model.safetensors")}
    printed = succeed("compare", *TINY, "--models", models, *SHORT, "--seeds", "4", "--out", "more.png").out
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert len([*Path("study").glob("*-seed*")]) == 8
    assert "text.txt: no model is told apart from" in printed
    assert Path("more.png").exists()
    assert "study was created with other settings (budget)" in refuse(
        "compare", *TINY, "--models", models, *SHORT[:2], "--budget", "9steps", "--run", "study"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_a_model_that_fails_stands_in_the_report_and_the_others_are_compared() -> None:
    wild = shuffled("lstm", "wild.toml", "optimizer.lr=1e38", "training.max_nonfinite_steps=1")
    result = compared(*TINY, "--models", f"lstm,{wild}", *SHORT)
    assert len(result["models"][0]["runs"]) == 3
    assert not result["models"][1]["runs"]
    assert "not finite" in result["models"][1]["errors"]["0"]
    assert result["verdict"] == "lstm alone was trained"


@pytest.mark.usefixtures("in_this_process")
def test_if_all_trainings_fail_the_first_error_says_why() -> None:
    settings = "optimizer.lr=1e38", "training.max_nonfinite_steps=1"
    result = run_command("compare", *TINY, *settings, "--models", "lstm,gru", *SHORT)
    assert (result.code, result.out) == (1, "")
    assert result.last.startswith("foveal: all 2 trainings failed; the first error, in study/lstm-seed0: ")
    assert "not finite" in result.last


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--models", "lstm"), "--models: 1 model; name two or more"),
        (("--models", "lstm,unheard"), "unknown preset or network 'unheard'"),
        (("--models", "lstm,gru", "--seeds", "2"), "--seeds 2: give at least 3"),
        (("--models", "lstm,gru", "--match", "time", "--budget", "9steps"), "--budget 9steps is no time"),
        (("--models", "lstm,gru", "--match", "tokens", "--budget", "9s"), "a faster model sees more tokens"),
        (("--models", "lstm,gru", "--budget", "0steps"), "nothing would be trained"),
        (("--models", "lstm,gru", "--budget", "long"), "budget 'long'"),
        (("--models", "lstm,gru", "--parameters", "many"), "--parameters many: expected a number above 0"),
        (
            ("--models", "lstm,gru", "--parameters", "9", "--match", "none"),
            "--parameters goes with --match params",
        ),
        (
            ("--models", "lstm,gru", "--parameters", "20"),
            "lstm: can't be matched to 20 parameters: the nearest",
        ),
        (("--models", "lstm,masked-lm"), "masked-lm: model.width is not read"),
        (("--models", "lstm,gru", "training.final_test=false"), "training.final_test=false leaves no loss"),
        (("--models", "lstm,gru", "model.widht=3"), "unknown key 'model.widht'"),
        (("--models", "lstm,gru", "--out", "report.doc"), "report.doc: expected a name that ends in"),
        (("--models", "lstm,gru", "data.test_fraction=0", "data.valid_fraction=0"), "no held-out rows"),
    ],
)
def test_refusals_leave_nothing_behind(arguments: tuple[str, ...], words: str, nothing_left: None) -> None:
    assert words in refuse("compare", *TINY, *arguments)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["good"] * 40, "rows to train on have the label 'good': at least two classes are needed"),
        (["good"], "rows.csv: a single row that can be used; give more"),
        (["good", "bad"], "no rows for the test set; give more rows, or set data.test_fraction=0"),
        (
            ["good", "bad", "good"],
            "is in the training rows (1), since 2 are held out; give more rows of each label",
        ),
    ],
)
def test_labels_that_can_not_be_learned_are_refused(
    labels: list[str], words: str, nothing_left: None
) -> None:
    rows = "".join(f"film {number},{label}\n" for number, label in enumerate(labels))
    Path("rows.csv").write_text(f"text,label\n{rows}")
    assert words in refuse("compare", "rows.csv", "--models", "text-classification,text-ngrams", *SHORT)
    assert not Path("study").exists()


def test_a_folder_of_something_else_is_refused() -> None:
    Path("study").mkdir()
    assert "study exists" in refuse("compare", *TINY, "--models", "lstm,gru", *SHORT)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_python_returns_the_comparison() -> None:
    settings = dict(each.split("=") for each in (*TINY[1:], "training.max_nonfinite_steps=1"))
    typed = {key: json.loads(value) for key, value in settings.items()}
    told = foveal.compare(
        "text.txt",
        models=["lstm", "gru"],
        match="none",
        budget="6steps",
        run="study",
        quiet=True,
        settings=typed,
    )
    assert told["model"] == ["lstm", "gru"]
    assert json.loads(Path("study/report.json").read_text())["verdict"] == told.verdict
    with pytest.raises(foveal.UserError, match="seeds=1: give at least 3"):
        foveal.compare("text.txt", models=["lstm", "gru"], seeds=1)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("match", "key"),
    [("params", "parameters"), ("flops", "flops_per_token"), ("memory", "step_bytes")],
)
def test_widths_are_solved_for(match: str, key: str) -> None:
    settings = "text.txt", "data.context_length=16", "data.batch_tokens=64", "training.statistics=false"
    given = ("--models", "lstm,attention,mamba", "--match", match, "--budget", "4steps", "--run", "study")
    models = compared(*settings, *given)["models"]
    reached = [model[key] for model in models]
    assert reached == pytest.approx([reached[0]] * 3, rel=0.02)
    for model in models:
        run = foveal.load(model["runs"][0]["run"])
        assert run.config.model.width == int(model["width"].split(",")[0])


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("match", "budget", "key", "equal"),
    [
        ("time", "1s", "seconds", pytest.approx(1, abs=0.5)),
        ("tokens", "640tokens", "tokens", 640),
    ],
)
def test_what_is_trained_is_equal_and_widths_stay(match: str, budget: str, key: str, equal: object) -> None:
    given = ("--models", "lstm,attention", "--match", match, "--budget", budget, "--run", "study")
    models = compared(*TINY, *given)["models"]
    assert [model["width"] for model in models] == ["16", "16"]
    assert [run[key] for model in models for run in model["runs"]] == [equal] * 6


@pytest.mark.slow
def test_a_model_of_a_plugin_is_trained_in_processes_of_its_own() -> None:
    plugin = ("--plugin", write_cell(Path("mine.py")), "--models", "lstm,own.toml", *SHORT)
    with restored_registries():
        shuffled("rnn", "own.toml", "model.mixers=tanh-cell", "--plugin", "mine.py")
    with restored_registries():
        result = compared(*TINY, *plugin)
    assert [len(model["runs"]) for model in result["models"]] == [3, 3]
    assert not result["not_measured"]
    with restored_registries():
        run = foveal.load(result["models"][1]["runs"][0]["run"], trust_plugin=True)
        assert type(run.model.stack.blocks[0].mixer.cell).__name__ == "Cell"


@pytest.mark.slow
def test_models_whose_losses_differ_by_five_percent_are_told_apart_with_five_seeds() -> None:
    files = [shuffled("lstm", "slow.toml"), shuffled("lstm", "fast.toml", "optimizer.lr=0.0025")]
    given = ("--match", "none", "--budget", "150steps", "--seeds", "5", "--run", "study")
    result = compared("text.txt", "--models", ",".join(files), *given)
    losses = {model["model"]: model["loss"] for model in result["models"]}
    assert 1.03 < losses["slow"] / losses["fast"] < 1.07
    assert result["differences"][0]["verdict"] == "told apart"
    assert result["verdict"] == "fast is best"


@pytest.mark.slow
def test_a_stopped_comparison_goes_on_to_the_end_of_one_that_was_not() -> None:
    given = ("--models", "lstm,gru", "--match", "none", "--budget", "60steps", "--run")
    whole = compared(*TINY, *given, "whole")

    def stopped(path: Path, arguments: Any, signals: Any, watch: Any) -> TrialEnd:
        if path.name == "gru-seed0":
            os.kill(os.getpid(), signal.SIGINT)
        return train_here(path, arguments, signals, watch)

    with patch(TRAIN_IN_PROCESS, stopped):
        told = run_command("compare", *TINY, *given, "parts")
    assert told.code == 130
    command = told.last.split("finished runs are kept; go on with: foveal ")[1].split()
    assert sorted(path.name for path in Path("parts").glob("*-seed*")) == ["lstm-seed0"]
    parts = json.loads(succeed(*command, "--json").out)
    for model, other in zip(whole["models"], parts["models"], strict=True):
        assert [run["scores"] for run in model["runs"]] == [run["scores"] for run in other["runs"]]


@pytest.mark.slow
def test_a_killed_training_is_told_and_gone_on_with() -> None:
    given = (*TINY, "--models", "lstm,gru", "--match", "none", "--budget", "400steps", "--run", "study")

    def killed(path: Path, arguments: Any, signals: Any, watch: WatchRecord) -> TrialEnd:
        def kill(record: dict[str, Any]) -> bool:
            if path.name == "gru-seed1":
                os.kill(int(_children()[-1]), signal.SIGKILL)
            return watch(record)

        return train_in_process(path, arguments, signals, kill)

    with patch(TRAIN_IN_PROCESS, killed):
        result = compared(*given)
    assert result["models"][1]["errors"] == {"1": "its process was ended by SIGKILL"}
    assert not result["differences"]  # two common seeds say nothing about the spread
    again = compared(*given)
    assert not again["models"][1]["errors"]
    assert len(again["differences"]) == 1


def _children() -> list[str]:
    tasks = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not tasks.exists():
        pytest.skip("this system does not list the children of a process")
    return tasks.read_text().split()
