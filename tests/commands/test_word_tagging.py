"""Words tagged by their forms: from a file to a run that is killed, resumed, measured and used."""

import json
from pathlib import Path
from typing import Any

import pytest

import foveal
from tests.support.command_line import refuse, succeed, table_rows
from tests.support.continued_runs import train_from_run
from tests.support.killed_runs import check_killed_run
from tests.support.small_texts import sentences, write_tags

SMALL = (
    "data.batch_tokens=400",
    "training.evaluate_every=10",
    "model.encoder.width=16",
    "model.encoder.embedding_width=8",
    "model.encoder.character_filters=10",
)
SURE = ("optimizer.lr=1e-2", "model.dropout=0", "model.encoder.dropout=0")


def train(*more: str, steps: int = 3) -> dict[str, Any]:
    told = succeed(
        "train", "tags.conllu", *SMALL, "--budget", f"{steps}steps", "--run", "run", "--json", *more
    )
    result: dict[str, Any] = json.loads(told.out)
    return result


def test_the_default_of_tagged_sentences() -> None:
    """A word never seen is tagged by its ending."""
    write_tags()
    told = succeed("train", "tags.conllu", *SMALL, *SURE, "--budget", "80steps", "--run", "run")
    assert "X) for each word, from 8 words and " in told.err
    assert json.loads(succeed("evaluate", "run", "--json").out)["accuracy"] == 1
    Path("new.txt").write_text("the green dog naps\nthe\n\nthe cat " + 40 * "rrrrr" + "uns\n")
    told = succeed("predict", "run", "new.txt")
    answers = [row["answer"] and json.loads(row["answer"]) for row in table_rows(told.out)]
    assert answers[:3] == [["X", "X", "NOUN", "VERB"], ["X"], ""]
    assert len(answers[3]) == 3
    assert "skipped: new.txt, line 3: empty" in told.err
    Path("foreign.txt").write_text("猫 走る the cat naps\n")
    (foreign,) = table_rows(succeed("predict", "run", "foreign.txt").out)
    assert len(json.loads(foreign["answer"])) == 5
    Path("foreign.txt").write_text("猫 走る\n")
    why = "foreign.txt: no readable source: foreign.txt, line 1: 100 % of its characters do not occur in"
    assert why in refuse("predict", "run", "foreign.txt")
    Path("foreign.txt").write_text("猫 走る\nthe cat naps\n")
    unread, read = table_rows(succeed("predict", "run", "foreign.txt").out)
    assert (unread["answer"], unread["reason"][:22]) == ("", "100 % of its character")
    assert (len(json.loads(read["answer"])), read["reason"]) == (3, "")
    (row,) = table_rows(succeed("predict", "run", "--text", "猫 走る").out)
    assert (row["answer"], row["reason"][:22]) == ("", "100 % of its character")
    succeed("inspect", "run", "confusion")


def test_a_sentence_longer_than_the_model_reads() -> None:
    write_tags()
    train("data.max_length=5")
    skipped = [json.loads(line) for line in Path("run/skipped.jsonl").read_text().splitlines()]
    assert {row["reason"] for row in skipped} == {"6 words, and data.max_length=5: train with more"}
    Path("long.txt").write_text("the " * 6 + "\nthe cat\n")
    told = succeed("predict", "run", "long.txt")
    assert "long.txt, line 1: 6 words, and the model reads at most 5: cut it" in told.err
    assert [bool(row["answer"]) for row in table_rows(told.out)] == [False, True]


def test_entities() -> None:
    rows = [
        " ".join("B-PET" if word in ("cat", "dog") else "O" for word in row.split()) for row in sentences()
    ]
    table = (json.dumps({"tokens": text, "tags": tags}) for text, tags in zip(sentences(), rows, strict=True))
    Path("tags.jsonl").write_text("\n".join(table))
    told = succeed("train", "tags.jsonl", *SMALL, *SURE, "--budget", "60steps", "--run", "run", "--json")
    assert json.loads(told.out)["entity_f1"] == 1


def test_a_killed_run_ends_as_another(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_killed_run(here, monkeypatch, write_tags, "tags.conllu", SMALL[:1] + SMALL[2:])


def test_a_run_that_starts_from_another_keeps_its_words() -> None:
    write_tags()
    train()
    tags = Path("tags.conllu").read_text().replace("VERB", "V").replace("runs", "jumps")
    Path("others.conllu").write_text(tags)
    assert "the encoder" in train_from_run("others.conllu")
    one, other = (foveal.load(run).processor for run in ("run", "more"))
    assert other.source == one.source
    assert other.target.labels == ("NOUN", "V", "X")
    Path("labels.csv").write_text("text,label\n" + "".join(f"{row},{len(row) % 2}\n" for row in sentences()))
    line = refuse("train", "labels.csv", "--from", "run", "--task", "text-classification")
    assert "its encoder (words) does not read the source of text-classification" in line


def test_a_language_model_is_trained_on_as_a_reader_of_tokens() -> None:
    write_tags()
    Path("text.txt").write_text("\n".join(sentences()))
    small = ("--model", "lstm", "model.width=16", "model.layers=1", "data.context_length=16")
    succeed("train", "text.txt", *small, "model.embedding_width=8", "--budget", "2steps", "--run", "run")
    train_from_run("tags.conllu", "--task", "tagging")
    config = foveal.load("more").config
    assert (config.model.encoder.kind, config.data.max_length) == ("text", 1500)


def test_settings_of_the_other_encoder_are_refused() -> None:
    write_tags()
    line = refuse("train", "tags.conllu", "--task", "tagging", "data.tokenizer=bpe")
    assert "data.tokenizer is not read" in line
    line = refuse("train", "tags.conllu", "--model", "tagging", "model.encoder.word_dropout=1")
    assert "model.encoder.word_dropout is not read, since model.encoder.kind=text" in line
    one_hot = "model.encoder.embedding_width=-1"
    line = refuse("train", "tags.conllu", "--task", "tagging", one_hot)
    assert "added, so they are not one-hot" in line
