"""`foveal plan` on the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import foveal
from tests.support.command_line import TINY_MODEL, run_command, succeed
from tests.support.small_texts import sentences

SMALL = (
    *("attention", "model.width=32", "model.layers=2", "data.context_length=16", "data.batch_tokens=64"),
    "training.precision=bfloat16",
)


def test_the_verdict_is_first():
    shown = succeed("plan", *SMALL, "--ranks", 4, "--tp", 2, "--hardware", "a100").out
    assert shown.startswith("attention on 4 x a100: fits (0.0 of 80 GB), ")
    for line in ("4 = pp 1 x dp 2 x tp 2", "weights", "all-reduce tp", "66% of 312 TFLOP/s", "DGX A100"):
        assert line in shown


def test_json_has_the_counts():
    plan = json.loads(succeed("plan", *SMALL, "--ranks", 8, "--tp", 2, "--pp", 2, "--json").out)
    described = json.loads(succeed("models", "describe", "attention", "--json").out)
    assert plan["parameters"] < described["parameters"]
    assert plan["layout"]["dp"] == 2
    assert plan["bubble"] == 1
    assert plan["memory"]["total"] == sum(
        size for kind, size in plan["memory"].items() if kind not in ("total", "device")
    )
    assert plan["seconds"]["total"] > 0
    assert {message["group"] for message in plan["messages"]} == {"tp", "dp", "pp"}


def test_the_report_has_the_sections_and_the_bars():
    layout = "--ranks", 4, "--tp", 2, "--hardware", "a100"
    shown = succeed("plan", *SMALL, *layout, "--out", "report.json").out
    succeed("plan", *SMALL, *layout, "--out", "report.html")
    assert "attention on 4 x a100: fits" in Path("report.html").read_text("utf-8")
    report = json.loads(Path("report.json").read_text())
    assert report["title"] == shown.splitlines()[0]
    for panel in report["panels"]:
        if panel["kind"] == "table":
            assert panel["title"] in shown.splitlines()
            assert all(f"{name} " in shown and amount in shown for name, amount in panel["rows"])
    memory, seconds = (panel["array"] for panel in report["panels"] if panel["kind"] == "bars")
    assert sum(memory["values"][0]) == pytest.approx(report["memory"]["total"] / 1e9)
    assert sum(seconds["values"][0]) == pytest.approx(report["seconds"]["total"])
    refused = run_command("plan", *SMALL, "--out", "report.txt")
    assert (refused.code, "report.txt: expected a name that ends in" in refused.last) == (2, True)


def test_keys_and_values_of_a_row_are_split_among_the_processes():
    two_layers, keys_and_values, half = 2, 2, 2
    for options, processes in (((), 1), (("--ranks", "4", "--tp", "2", "--pp", "2"), 4)):
        plan = json.loads(succeed("plan", *SMALL, *options, "--json").out)
        assert plan["inference"]["state"] == two_layers * keys_and_values * 16 * 32 * half // processes
        assert plan["inference"]["weights"]["float32"] == 4 * plan["parameters_per_process"]


def test_this_machine_is_measured_on_data_and_for_a_run():
    Path("text.txt").write_text("\n".join(sentences()))
    planned = json.loads(succeed("plan", "lstm", *TINY_MODEL, "--data", "text.txt", "--json").out)
    assert planned["memory"]["peak"] > 50 * planned["memory"]["tensors"]["weights"] > 0
    seconds = planned["seconds"]
    assert seconds["epoch"] == pytest.approx(seconds["epoch_steps"] + seconds["evaluation"])
    assert seconds["epoch_steps"] == pytest.approx(planned["steps_per_epoch"] * seconds["step"])
    succeed("train", "text.txt", "--model", "lstm", *TINY_MODEL, "--budget", "1steps", "--run", "run")
    shown = succeed("plan", "run", "--hardware", "this-machine").out
    assert re.match(r"run on this machine: about [\d.]+ [MG]B .* of memory, .* an epoch with its eval", shown)
    refused = run_command("plan", "run", "model.width=8", "--hardware", "this-machine")
    assert (refused.code, "a run keeps its settings" in refused.last) == (2, True)
    refused = run_command("plan", "run", "--hardware", "this-machine", "--valid", "text.txt")
    assert (refused.code, "--valid: run is planned on its own data" in refused.last) == (2, True)
    refused = run_command("plan", "run", "--data", "text.txt")
    assert (refused.code, "run: a run is planned on its own data" in refused.last) == (2, True)
    with pytest.raises(foveal.UserError, match="task: run is planned on its own data"):
        foveal.plan("run", hardware="this-machine", task="tagging")
    refused = run_command("plan", "run")
    assert (refused.code, "has LSTM" in refused.last) == (2, True)
    assert refused.last.endswith("this machine measures it, in one process: add --hardware this-machine")
    succeed("plan", "run", "--hardware", "this-machine", "--device", "cpu", "--out", "report.png")
    assert Path("report.png").read_bytes().startswith(b"\x89PNG")


def test_columns_and_the_task_are_named_for_this_machine():
    rows = [f"{sentence}\t{number % 2}" for number, sentence in enumerate(sentences() * 4)]
    Path("texts.tsv").write_text("\n".join(["words\tmood", *rows]))
    options = "--task", "text-classification", "--text", "words", "--label", "mood", "--out", "report.json"
    settings = "model.encoder.layers=1", "model.encoder.width=16", "data.max_length=16"
    shown = succeed("plan", "text-classification", *settings, "--data", "texts.tsv", *options).out
    assert shown.startswith("text-classification on this machine: about ")
    report = json.loads(Path("report.json").read_text())
    assert report["view"] == "plan"
    bars = {panel["title"] for panel in report["panels"] if panel["kind"] == "bars"}
    assert bars == {"memory of the process", "tensors of a step at its peak", "time of an epoch"}
    others = "--text", "words", "--label", "moods"
    refused = run_command("plan", "text-classification", "--data", "texts.tsv", *others)
    assert (refused.code, "moods" in refused.last) == (2, True)


def test_a_model_that_does_not_fit_is_advised():
    shown = succeed("plan", "gpt3", "model.layers=4", "data.batch_tokens=2048").out
    assert "does not fit" in shown.splitlines()[0]
    assert "--fsdp" in shown.splitlines()[0]


@pytest.mark.slow
def test_a_published_figure_of_96_layers_stands_beside_the_count():
    small = ("data.batch_tokens=2048", "--hardware", "a100")
    told = json.loads(succeed("plan", "gpt3", *small, "--ranks", 1, "--json").out)
    assert told["published"]["parameters"] == 175_000_000_000
    assert 6 <= told["flops_per_token"] / told["parameters"] < 7


def test_published_figures_stand_beside_the_count():
    shown = succeed("plan", "gpt2", "data.batch_tokens=1024", "training.budget=1steps").out
    assert "117,000,000, -6.0% (Radford et al. 2019, table 2): the paper is wrong" in shown
    assert "lectures    117,000,000, -6.0%\n" in shown
    for other in (("data.vocab_size=1000",), ("--vocabulary", "100")):
        assert "published" not in succeed("plan", "gpt2", "data.batch_tokens=1024", *other).out


def test_the_published_figure_of_a_residual_network_is_its_multiplications():
    """He et al. 2015, table 1: 1.8 billion for an image."""
    shown = succeed("plan", "resnet-18", "data.image.batch_size=2").out
    assert "published   1,800,000,000 multiplications of an image forward; counted are 1,814,073,344" in shown
    assert "published" not in succeed("plan", "resnet-18", "data.image.batch_size=2", "--classes", "10").out


@pytest.mark.parametrize(
    ("name", "parameters", "unit"),
    [
        ("resnet-18", 11_689_512, "images"),
        ("vit-b", 86_567_656, "images"),
        ("masked-lm", 6_862_147, "tokens"),
    ],
)
def test_networks_and_encoders_are_counted(name, parameters, unit):
    told = json.loads(succeed("plan", name, "--ranks", 2, "--json").out)
    assert (told["parameters"], told["unit"]) == (parameters, unit)
    assert {message["group"] for message in told["messages"]} == {"dp"}
    assert ("attention_matrix" in told) == (unit == "tokens" or "vit" in name)


def test_the_translation_table():
    """Hours times the peak are about three times the operations that the training takes."""
    arguments = "plan", "transformer-base", "data.batch_tokens=1024", "--price-per-hour", "1000"
    shown = succeed(*arguments).out
    hours, cost = (
        [float(amount.replace(",", "")) for amount in re.findall(pattern, shown)]
        for pattern in (r"([\d.,]+) device hours", r"cost +([\d.,]+), at 1,000 an hour")
    )
    assert len(hours) == 2  # the training as published, and that of so small a batch
    assert cost == pytest.approx([1000 * each for each in hours], rel=0.01)
    assert "weights in 16 bits" in shown
    assert "key-value cache" not in shown
    assert "65,000,000, +3.0% (Vaswani et al. 2017, table 3)" in shown
    assert "9.79e+17 FLOP, 0.39 GFLOP a target token; the paper reckons 3.3e+18 (12 hours of" in shown


def test_the_matrix_of_attention_is_in_both_units():
    """100,000 positions and 64 heads in 16 bits: 1.28 TB, which are 1.164 TiB."""
    long = ("model.layers=1", "model.width=128", "model.attention.heads=64", "data.context_length=100000")
    arguments = "plan", "attention", *long, "data.batch_tokens=100000", "training.precision=bfloat16"
    shown = succeed(*arguments).out
    assert "would take 1.28 TB (1.164 TiB) in a layer of all processes, O(T²)" in shown
    assert "; the kernel keeps 25.6 MB (24.41 MiB), O(T)" in shown
    told = json.loads(succeed(*arguments, "--json").out)
    assert told["attention_matrix"] == {"bytes": 64 * 100_000**2 * 2, "kept_bytes": 64 * 100_000 * 4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("attention", "--hardware", "h10"), "--hardware h10: unknown; did you mean 'h100'?"),
        (("attention", "--utilization", "40"), "--utilization 40: expected a part of the peak, such as 0.4"),
        (("attention", "--data", "x", "--utilization", "0.4"), "--utilization: this machine is measured"),
        (("attention", "--data", "x", "--hardware", "this-machin"), "did you mean 'this-machine'?"),
        (("attention", "--ranks", "6", "--tp", "4"), "--ranks 6: not a multiple of --tp 4 x --pp 1"),
        (("attention", "--ranks", "3", "--tp", "3"), "--tp 3: stack.blocks.0.mixer: 4 heads can't be split"),
        (("attention", "--ranks", "8", "--pp", "8"), "--pp 8: 4 layers are fewer than the 8 parts"),
        (("attention", "--ranks", "2", "--ep", "2"), "--ep 2: the model has no experts"),
        (("moe", "--ranks", "3", "--ep", "3"), "--ep 3: does not divide model.experts.count=8"),
        (("moe", "--ranks", "4", "--ep", "3"), "--ep 3: the 4 processes"),
        (("attention", "--ranks", "3"), "not 3 processes x 1 micro-batches; set data.batch_tokens="),
        (("attention", "--ranks", "4", "--tp", "2", "--fsdp"), "--fsdp: a plan counts it alone"),
        (("attention", "--fsdp"), "--fsdp: a single process"),
        (("attention", "--virtual-stages", "2"), "--virtual-stages 2: there is no pipeline"),
        (("attention", "--micro-batches", "0"), "--micro-batches 0: expected a whole number from 1 on"),
        (("attention", "--vocabulary", "0"), "--vocabulary 0: expected a whole number from 1 on"),
        (("lstm",), "language-model has LSTM; this machine measures it, in one process: add --data DATA"),
        (("translation-gru",), "translation has AttentionRNN and Bidirectional; this machine"),
        (("resnet-51",), "unknown preset 'resnet-51'"),
        (("runs/none",), "runs/none: no run, and no preset is called so"),
        (("tagging",), "counts no models of task tagging"),
        (("tagging",), "this machine measures it, in one process: add --data DATA"),
        (("masked-lm", "--ranks", "2", "--tp", "2"), "--tp: a plan counts it for language models alone"),
        (("vit", "--ranks", "2", "--fsdp"), "--fsdp: a plan counts it for language models alone"),
        (("vit", "--vocabulary", "9"), "--vocabulary: a model of task image-classification has no such size"),
        (("vit", "--ranks", "3"), "data.image.batch_size=128: 128 images are not 3 processes x 1 micro-"),
        (("translation", "--ranks", "3"), "11 rows of 512 tokens are not 3 processes x 1 micro-batches"),
        (("attentoin",), "attention"),
        (("attention", "--hardware", "this-machine"), "attention: not a run, so the data are needed"),
        (("attention", "--data", "x", "--ranks", "2"), "--ranks: this machine is measured in one process"),
        (("attention", "--data", "x", "--vocabulary", "9"), "--vocabulary: this machine is measured"),
        (("attention", "--data", "x", "--hardware", "h100"), "--data: is read for --hardware this-machine"),
        (("attention", "--device", "cpu"), "--device: is read for --hardware this-machine alone"),
        (("attention", "--task", "tagging"), "--task: is read for --hardware this-machine alone"),
        (("attention", "--valid", "x"), "--valid: is read for --hardware this-machine alone"),
        (("attention", "--data", "nowhere.txt"), "nowhere.txt"),
        (("gpt2", "--price-per-hour", "nan"), "--price-per-hour nan: expected an amount above 0"),
        ((*SMALL, "--price-per-hour", "2"), "the budget 3m is no number of steps or tokens; give one"),
        ((*SMALL, "training.budget=3"), "budget '3': expected an amount above 0"),
    ],
)
def test_what_does_not_fit_is_one_line(arguments, message):
    result = run_command("plan", *arguments)
    assert result.code == 2
    assert message in result.last


@pytest.mark.slow
def test_a_process_of_gpt3_takes_little_memory():
    code = (
        "import re, sys; from pathlib import Path; from foveal.cli import main; "
        "sys.argv[1:] = 'plan gpt3 --ranks 512 --tp 8 --micro-batches 8 --json'.split(); main(); "
        # `ru_maxrss` would have the memory of the process that started this one.
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plan, kilobytes = done.stdout.splitlines()
    assert json.loads(plan)["parameters"] == pytest.approx(175e9, rel=0.003)
    assert int(kilobytes) < 1e6


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        ("lstm", "data.batch_tokens=2048", "model.width=256"),
        ("attention", "data.batch_tokens=4096"),
    ],
)
def test_predicted_memory_is_what_the_system_counts(settings):
    model, *others = settings
    Path("text.txt").write_text("\n".join(sentences() * 300))
    planned, _ = in_a_process("plan", model, *others, "--data", "text.txt", "--json")
    arguments = "text.txt", "--model", model, *others, "--budget", "20steps", "--run", "run"
    _, peak = in_a_process("train", *arguments)
    assert json.loads(planned)["memory"]["peak"] == pytest.approx(peak, rel=0.15)


def in_a_process(*arguments):
    """Return the output of a command, and the most memory of its process."""
    code = (
        f"import re; from pathlib import Path; from foveal.cli import main; import sys; "
        f"sys.argv[1:] = {arguments!r}; main(); "
        # `ru_maxrss` would have the memory of the process that started this one.
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *output, kilobytes = done.stdout.splitlines()
    return "\n".join(output), 1024 * int(kilobytes)
