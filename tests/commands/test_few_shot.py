"""Prompts of examples: `--shots` of generate and evaluate."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foveal
from foveal.core.errors import UserError
from tests.support.command_line import TINY_MODEL, refuse, succeed

TEMPLATE = ("--template", r"the {source} and {target}\n")
EXAMPLES = (("cat", "hat"), ("dog", "log"))


@pytest.fixture(autouse=True)
def examples(here: Path) -> None:
    lines = ["source\ttarget", *("\t".join(each) for each in EXAMPLES)]
    Path("examples.tsv").write_text("\n".join(lines))


def answers(*arguments: object) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = json.loads(succeed("generate", *arguments, "--json").out)["samples"]
    return samples


def test_generate_answers_behind_the_examples(finished: Path) -> None:
    """The answer is the continuation of the prompt that is shown, up to the end of its line."""
    request = (finished, "--shots", "examples.tsv", *TEMPLATE, "--temperature", "0")
    (one,) = answers(*request, "--prompt", "bird")
    assert one["source"] == "bird"
    assert one["prompt"] == "the cat and hat\nthe dog and log\nthe bird and"
    (plain,) = answers(finished, "--prompt", one["prompt"], "--temperature", "0", "--tokens", "80")
    assert plain["text"].strip().startswith(one["text"])
    assert "\n" not in one["text"]
    assert succeed("generate", *request, "--prompt", "bird").out == f"{one['text']}\n"


def test_each_line_of_a_file_is_answered(finished: Path) -> None:
    Path("sources.txt").write_text("bird\na man\n")
    request = (finished, "--shots", "examples.tsv", *TEMPLATE, "--seed", "3", "--tokens", "9")
    both = answers(*request, "--input", "sources.txt", "--samples", "2")
    assert [one["source"] for one in both] == ["bird", "bird", "a man", "a man"]
    assert [one["text"] for one in both[2:]] == [
        one["text"] for one in answers(*request, "--prompt", "a man", "--samples", "2")
    ]


def test_evaluate_scores_the_greedy_answers(finished: Path) -> None:
    """A table of the model's own answers is all right; of others, chrF is that of the metric."""
    Path("sources.txt").write_text("a cat and a dog\nthe\nthat is the cat\nit is\nin a tree\n")
    request = ("--shots", "examples.tsv", *TEMPLATE)
    every = answers(finished, *request, "--input", "sources.txt", "--temperature", "0")
    written = [one for one in every if one["text"]]
    sources, own = ([one[name] for one in written] for name in ("source", "text"))
    assert sources
    write_pairs("own.csv", sources, own)
    scores = json.loads(succeed("evaluate", finished, "own.csv", *request, "--json").out)
    assert (scores["exact"], scores["examples"], scores["shots"]) == (1.0, len(own), 2)
    assert scores["chrf"] == pytest.approx(100)
    copied = foveal.metrics.chrf(own, sources).value
    assert scores["baseline"] == {"name": "a copy of the source", "chrf": copied}
    others = [f"{text} and more" for text in own]
    write_pairs("other.csv", sources, others)
    result = succeed("evaluate", finished, "other.csv", *request)
    chrf = foveal.metrics.chrf(others, own).value
    assert f"{chrf:.4g}" in result.out
    assert "baseline" in result.out


def test_python_is_the_command(finished: Path) -> None:
    run, template = foveal.load(finished), TEMPLATE[1]
    write_pairs("pairs.csv", ["bird"], ["man"])
    command = answers(finished, "--shots", "examples.tsv", *TEMPLATE, "--prompt", "bird")
    texts = run.generate("bird", shots=list(EXAMPLES), template=template)
    assert (texts.texts, str(texts)) == ([command[0]["text"]], command[0]["text"])
    scores = json.loads(
        succeed("evaluate", finished, "pairs.csv", "--shots", "examples.tsv", *TEMPLATE, "--json").out
    )
    assert run.evaluate("pairs.csv", shots="examples.tsv", template=template)["chrf"] == scores["chrf"]
    in_memory = run.evaluate([("bird", "man")], shots=EXAMPLES, template=template)
    assert in_memory["chrf"] == scores["chrf"]


def test_columns_of_other_names(finished: Path) -> None:
    Path("named.csv").write_text("wrong,right\ncat,hat\ndog,log\n")
    columns = ("data.source=wrong", "data.target=right")
    request = ("--shots", "named.csv", *TEMPLATE)
    (one,) = answers(finished, *columns, *request, "--prompt", "bird")
    assert one["prompt"].startswith("the cat and hat\n")
    succeed("evaluate", finished, "named.csv", *columns, *request)


@pytest.mark.slow
def test_ranks_share_the_answers(finished: Path) -> None:
    write_pairs("pairs.csv", ["bird", "man"] * 20, ["hat", "log"] * 20)
    command = ("evaluate", str(finished), "pairs.csv", "--shots", "examples.tsv", *TEMPLATE, "--json")
    ranks = [sys.executable, "-m", "foveal", *command, "--ranks", "2"]
    shared = subprocess.run(ranks, capture_output=True, text=True, check=True)
    assert json.loads(shared.stdout) == json.loads(succeed(*command).out)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("source\ttarget\n", "bad.tsv: no usable row; give rows"),
        ("source\ttarget\ncat\that\ndog\t\n", "bad.tsv, line 3: 'target' is empty"),
        ("source\ttarget\ncat\t  \n", "'target' is empty"),
        ("a\tb\ncat\that\n", "bad.tsv: no column 'source' among 'a', 'b'"),
        ("", "bad.tsv, line 1: empty"),
        ("\0\0", "bad.tsv: "),
    ],
)
def test_a_bad_table_is_one_line(finished: Path, table: str, message: str) -> None:
    Path("bad.tsv").write_text(table)
    assert message in refuse("generate", finished, "--shots", "bad.tsv", "--prompt", "bird")


def test_an_example_has_no_line_break(finished: Path) -> None:
    Path("lines.csv").write_text('source,target\ncat,"hat\nlog"\n')
    message = refuse("generate", finished, "--shots", "lines.csv", "--prompt", "bird")
    assert message == (
        "foveal: lines.csv, line 2: its target has a line break, at which an answer ends; "
        "write it in one line\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "bird", "--template", "x"], "--template is that of --shots"),
        (["--prompt", "bird", "data.source=a"], "data.source=a: columns are those of --shots"),
        (["--shots", "examples.tsv"], "source 1 is empty: --shots needs a text to answer"),
        (["--shots", "examples.tsv", "--prompt", "b", "--beam", "2"], "leave out --beam"),
        (["--shots", "examples.tsv", "--prompt", "b", "model.width=3"], "only data.source, data.target"),
        (["--shots", "missing.tsv", "--prompt", "b"], "missing.tsv: can't read"),
    ],
)
def test_options_that_do_not_fit(finished: Path, arguments: list[str], message: str) -> None:
    assert message in refuse("generate", finished, *arguments)


def test_evaluate_needs_pairs(finished: Path) -> None:
    assert "name a table" in refuse("evaluate", finished, "--shots", "examples.tsv")
    assert "not a table" in refuse("evaluate", finished, "text.txt", "--shots", "examples.tsv")


def test_another_task_takes_no_examples(here: Path) -> None:
    rows = "".join(f"{word} {i},{word}\n" for word in ("cat", "dog") for i in range(40))
    Path("labels.csv").write_text(f"text,label\n{rows}")
    arguments = ("--task", "text-classification", "--budget", "2steps", "--run", "classifier")
    succeed("train", "labels.csv", *arguments, "data.batch_tokens=64", "data.test_fraction=0")
    for command in (("generate", "classifier", "--prompt", "x"), ("evaluate", "classifier", "labels.csv")):
        message = refuse(*command, "--shots", "examples.tsv")
        assert message == (
            "foveal: --shots: classifier (task text-classification) continues no text: "
            "give a language model, or leave out --shots\n"
        )


def test_a_prompt_longer_than_the_context(here: Path) -> None:
    attention = ("--model", "attention", "model.attention.heads=2", "model.positions.kind=learned")
    succeed("train", "text.txt", *attention, *TINY_MODEL, "--budget", "2steps", "--run", "short")
    message = refuse("generate", "short", "--shots", "examples.tsv", *TEMPLATE, "--prompt", "bird")
    assert message == (
        "foveal: the prompt has 44 tokens, and short reads 16 with the answer: "
        "give fewer or shorter examples\n"
    )


def test_an_answer_ends_where_positions_end(here: Path) -> None:
    """By default; more tokens than there are positions for are refused."""
    attention = ("--model", "attention", "model.attention.heads=2", "model.positions.kind=learned")
    sizes = ("model.width=16", "model.layers=1", "data.context_length=24", "data.batch_tokens=96")
    succeed("train", "text.txt", *attention, *sizes, "--budget", "2steps", "--run", "short")
    request = ("short", "--shots", "examples.tsv", "--template", r"{source} {target}\n", "--prompt", "a")
    for seed in range(5):
        (one,) = answers(*request, "--seed", seed)
        assert len(one["prompt"]) == 17
        assert len(one["text"]) <= 8
    write_pairs("pairs.csv", ["a", "a cat"], ["hat", "log"])
    succeed("evaluate", "short", "pairs.csv", *request[1:-2])
    assert "learned positions end at 24" in refuse("generate", *request, "--tokens", "9")


def test_a_table_of_too_many_examples(finished: Path) -> None:
    write_pairs("many.csv", ["cat"] * 1001, ["hat"] * 1001)
    message = refuse("generate", finished, "--shots", "many.csv", "--prompt", "bird")
    assert message == "foveal: many.csv: over 1,000 examples, too many for a prompt: give fewer\n"


def test_pairs_in_memory_are_checked(finished: Path) -> None:
    run = foveal.load(finished)
    for shots, message in (
        ([], "no examples"),
        ([("cat",)], "pair 1: expected a source and a target"),
        ([("cat", "hat"), ("dog", "")], "pair 2: its target is empty"),
    ):
        with pytest.raises(UserError, match=message):
            run.generate("bird", shots=shots)


def write_pairs(path: str, sources: list[str], targets: list[str]) -> None:
    rows = (f"{source},{target}\n" for source, target in zip(sources, targets, strict=True))
    Path(path).write_text("source,target\n" + "".join(rows))
