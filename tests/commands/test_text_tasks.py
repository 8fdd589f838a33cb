"""Pairs, labelled texts and tagged sentences: from a file to a run that is resumed, measured and used."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import foveal
from foveal.tasks.text_classification import TextClassificationTask
from tests.support.command_line import CommandResult, refuse, run_command, succeed, table_rows
from tests.support.small_texts import (
    DECODER,
    PAIRS,
    SMALL,
    SPEECH,
    STRINGS,
    TAGS,
    sentences,
    write_labels,
    write_pairs,
    write_tags,
    write_tones,
)

GREEDY = (("--temperature", "0"), ("--beam", "1"))


def train(data: str, *more: object, steps: int = 20, small: Sequence[str] = SMALL) -> dict[str, Any]:
    told = succeed("train", data, *small, "--budget", f"{steps}steps", "--run", "run", "--json", *more)
    result: dict[str, Any] = json.loads(told.out)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["translation", "translation-gru"])
def test_translate(preset: str) -> None:
    rows = write_pairs()
    result = train("pairs.tsv", "--model", preset, small=PAIRS)
    assert {"loss", "perplexity", "bleu", "bleu_interval", "bleu_signature", "chrf"} <= result.keys()
    assert result["split"] == "test"
    sample = json.loads(Path("run/samples.jsonl").read_text().splitlines()[-1])
    assert " -> " in sample["text"]
    again = json.loads(succeed("evaluate", "run", "--json").out)
    for name in ("loss", "bleu", "chrf"):
        assert again[name] == pytest.approx(result[name], rel=1e-5)
    other = json.loads(succeed("evaluate", "run", "pairs.tsv", "--json").out)
    assert other["examples"] == len(rows)
    Path("some.txt").write_text("the red cat\nthe dog runs\n")
    told = succeed("generate", "run", "--input", "some.txt")
    assert told.out.count("\n") == 2
    found = json.loads(succeed("generate", "run", "--prompt", "the cat", "--best", "2", "--json").out)
    assert len(found["samples"]) == 2
    assert found["samples"][0]["source"] == "the cat"
    drawing = ("generate", "run", "--prompt", "the cat", "--temperature", "1.5", "--samples", "3", "--json")
    drawn, again = (json.loads(succeed(*drawing).out)["samples"] for _ in range(2))
    assert len(drawn) == 3
    assert [one["text"] for one in drawn] == [one["text"] for one in again]
    greedy = [succeed("generate", "run", "--input", "some.txt", *one) for one in GREEDY]
    assert greedy[0].out == greedy[1].out
    for drawn_by in (("--top-k", "2"), ("--temperature", "0.8")):  # the default, but asked for
        line = refuse("generate", "run", "--prompt", "a", *drawn_by, "--best", "2")
        assert "need beam search" in line
    for suffix in ("png", "html", "json"):
        succeed("generate", "run", "--prompt", "the cat", "--attention", f"drawn.{suffix}")
        assert Path(f"drawn.{suffix}").stat().st_size > 50
    foveal.load("run").generate("the cat", attention="python.json")
    assert Path("python.json").read_text() == Path("drawn.json").read_text()
    assert "this model reads only a summary" not in told.err


def test_attention_is_of_those_layers_that_attend() -> None:
    write_pairs()
    mixed = ("model.mixers=attention-rnn,cross", "model.layers=2", "model.attention_rnn.score=initial-state")
    train("pairs.tsv", "--model", "translation-gru", *mixed, steps=2, small=PAIRS)
    succeed("generate", "run", "--prompt", "the cat", "--attention", "a.json")
    assert len(json.loads(Path("a.json").read_text())) > 0


def test_spaces_between_the_words_of_a_target_are_all_alike() -> None:
    rows = "".join(f"{row}\t{row.replace(' ', '  ')}\n" for row in sentences(30))
    Path("pairs.tsv").write_text("source\ttarget\n" + rows)
    word = ("--model", "transduction", "data.tokenizer=word", "data.target_tokenizer=word")
    train("pairs.tsv", *word, "--test", "pairs.tsv", steps=2, small=STRINGS)
    told = json.loads(succeed("evaluate", "run", "--json").out)
    assert all("  " not in row["reference"] for row in told["worst"])


def test_previews_are_of_what_chooses_the_weights() -> None:
    """The test part is looked at once, at the end."""
    rows = [f"{row}\t{row[::-1]}\n" for row in sentences(40)]
    for name, some in (("train", rows[:30]), ("valid", rows[30:35]), ("test", rows[35:])):
        Path(f"{name}.tsv").write_text("source\ttarget\n" + "".join(some))
    given = ("--model", "transduction", "--valid", "valid.tsv", "--test", "test.tsv")
    train("train.tsv", *given, steps=2, small=STRINGS)
    samples = Path("run/samples.jsonl").read_text()
    assert rows[30].split("\t")[0] in samples
    assert rows[35].split("\t")[0] not in samples


def test_an_encoder_has_no_window() -> None:
    write_pairs()
    window = "model.encoder.attention.window=3"
    assert "an encoder sees the whole row; leave the window out" in refuse(
        "train", "pairs.tsv", "--model", "translation", window
    )


def test_the_bottleneck_has_no_attention_to_draw() -> None:
    write_pairs()
    bottleneck = ("--model", "translation-gru", "model.attention_rnn.score=every-step")
    train("pairs.tsv", *bottleneck, steps=2, small=PAIRS)
    line = run_command("generate", "run", "--prompt", "the cat", "--attention", "a.png")
    assert line.code == 2
    assert "reads only a summary of the source" in line.err


def test_aligned_files_and_resume(here: Path) -> None:
    rows = sentences()
    for name, part in (("train", rows[:50]), ("valid", rows[50:])):
        Path(f"{name}.a").write_text("".join(f"{row}\n" for row in part))
        Path(f"{name}.b").write_text("".join(f"{row[::-1]}\n" for row in part))
    given = ("train.a,train.b", "--valid", "valid.a,valid.b", "--model", "translation")
    result = train(*given, steps=6, small=PAIRS)
    assert result["split"] == "valid"
    assert "run exists" in refuse("train", *given, "--run", "run")
    facts = json.loads(succeed("evaluate", "run", "--json").out)
    assert facts["examples"] == 10
    told = run_command("resume", "run")
    assert told.code == 2
    assert "finished after 6 steps" in told.last


def test_transduce_words() -> None:
    Path("moves.tsv").write_text(
        "source\ttarget\n" + "".join(f"{row}\t{' '.join(row.upper().split()[::-1])}\n" for row in sentences())
    )
    result = train("moves.tsv", "--task", "transduction", "--model", "transduction", small=STRINGS)
    assert {"exact", "wer", "cer"} <= result.keys()


def test_classify() -> None:
    write_labels()
    result = train("labels.csv", "data.max_length=8", steps=60)
    assert {"accuracy", "macro_f1", "accuracy_interval", "worst", "by_length"} <= result.keys()
    Path("more.txt").write_text("the red cat\n\nthe dog\n")
    told = succeed("predict", "run", "more.txt")
    texts, answers = zip(*((row["text"], row["answer"]) for row in table_rows(told.out)), strict=True)
    assert texts == ("the red cat", "", "the dog")
    assert [answer in ("cat", "none") for answer in answers] == [True, False, True]
    assert "skipped: more.txt, line 2: empty" in told.err
    rows = table_rows(succeed("predict", "run", "labels.csv").out)
    assert {row["answer"] for row in rows} <= {"cat", "none"}
    assert [row["text"] for row in rows] == sentences()
    assert {row["label"] for row in rows} == {"cat", "none"}, "the table's own column"


def last_lines(told: CommandResult) -> list[list[str]]:
    """The commands that a training ends with, as they would be typed."""
    lines = told.err.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("next "))
    return [shlex.split(line.removeprefix("next"))[1:] for line in lines[first:]]


@pytest.mark.parametrize("task", ["translation", "masked-lm", "text-classification"])
def test_a_training_ends_with_commands_that_work(task: str) -> None:
    write_pairs()
    write_labels()
    Path("text.txt").write_text("\n".join(sentences()))
    data = {"translation": "pairs.tsv", "masked-lm": "text.txt", "text-classification": "labels.csv"}[task]
    sizes = {"translation": DECODER[:2], "masked-lm": ("data.context_length=16",)}.get(task, ())
    small = (*SMALL, *sizes, "--budget", "3steps", "--task", task)
    told = succeed("train", data, *small, "--run", "a run")
    commands = last_lines(told)
    uses = {"translation": "generate", "masked-lm": "generate", "text-classification": "predict"}
    assert [one[0] for one in commands] == [uses[task], "evaluate", "inspect"]
    for arguments in commands:
        succeed(*(data if argument == "DATA" else argument for argument in arguments))
    assert "warm-up" not in told.err
    assert " of evaluations, before the test" in told.err
    assert "best so far" not in told.err


def test_a_classifier_of_many_texts_stops_early_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The labels say nothing about the texts, so that the best comes early, and is what is scored."""
    few = replace(TextClassificationTask.closed_form, most_rows=5)
    monkeypatch.setattr(TextClassificationTask, "closed_form", few)
    rows = "".join(f"{row} {number},{number % 2}\n" for number, row in enumerate(sentences()))
    Path("labels.csv").write_text(f"text,label\n{rows}")
    told = succeed("train", "labels.csv", "training.evaluate_every=1", "--run", "run", "--json")
    assert "text-classification with training.patience=5, since" in told.err
    assert "else training.patience=0" in told.err
    stopped = re.search(r"stopped early at step (\d+): no progress since step (\d+)", told.err)
    assert stopped
    assert int(stopped[1]) == int(stopped[2]) + 5
    assert f"of step {stopped[2]}, the best on the validation set" in told.err
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["loss"] == json.loads(told.out)["loss"]
    assert "patience" not in succeed("train", "labels.csv", "--budget", "1steps", "--run", "other").err


def test_a_label_has_no_perplexity() -> None:
    write_labels()
    told = succeed("train", "labels.csv", *SMALL, "--budget", "2steps", "--run", "run")
    (line,) = (line for line in told.err.splitlines() if line.startswith("test loss"))
    assert " nats per text, accuracy " in line
    assert "perplexity" not in told.err
    assert "length (words)" in told.err
    assert "perplexity" not in json.loads(succeed("evaluate", "run", "--json").out)


def test_tag() -> None:
    write_tags()
    result = train(
        *("tags.conllu", "optimizer.lr=1e-2", "model.dropout=0", "model.encoder.dropout=0"),
        steps=80,
        small=TAGS,
    )
    assert result["accuracy"] > 0.5
    predictions = json.loads(succeed("predict", "run", "tags.conllu", "--json").out)["predictions"]
    for row in predictions:
        assert len(row["source"].split()) == len(row["output"].split())
    Path("words.jsonl").write_text('{"tokens": ["the", "cat"]}\n{"tokens": []}\n{"tokens": ["a", "dog"]}\n')
    told = json.loads(succeed("predict", "run", "words.jsonl", "--json").out)
    assert [row["location"] for row in told["predictions"]] == ["words.jsonl, line 1", "words.jsonl, line 3"]
    (skipped,) = told["skipped"]
    assert skipped["location"] == "words.jsonl, line 2"
    assert skipped["reason"].startswith("no words")


def test_transcribe() -> None:
    """Two tones are recognized by name. Silent recordings and other files are skipped."""
    write_tones("tones")
    soundfile.write("tones/silent.wav", np.zeros(800), 8000)
    Path("tones/text.wav").write_text("no sound")
    with Path("tones/metadata.csv").open("a") as file:
        file.write("silent.wav,low\ntext.wav,low\nmissing.wav,low\n")
    settings = (
        "model.encoder.layers=2",
        "data.batch_tokens=2000",
        "data.valid_fraction=0.2",
        "data.test_fraction=0.2",
    )
    result = train("tones", *settings, steps=4, small=SPEECH)
    assert {"exact", "wer", "cer", "by_length"} <= result.keys()
    skipped = [json.loads(line) for line in Path("run/skipped.jsonl").read_text().splitlines()]
    assert {why for row in skipped for why in ("silent", "not readable", "missing") if why in str(row)} == {
        "silent",
        "not readable",
        "missing",
    }
    (row,) = table_rows(succeed("predict", "run", "tones/1.wav").out)
    assert row["file_name"] == "1.wav"
    assert float(row["log_probability"]) <= 0
    assert "reads recordings: give --input PATH" in refuse("generate", "run", "--prompt", "a")
    assert "silent.wav: silent" in refuse("predict", "run", "tones/silent.wav")


def test_what_was_heard_is_written_by_beam_or_by_chance_and_drawn() -> None:
    write_tones("tones")
    train("tones", "model.encoder.layers=2", "data.batch_tokens=2000", steps=4, small=SPEECH)
    given = ("generate", "run", "--input", "tones/1.wav")
    ((_, alone, *_),) = (row.values() for row in table_rows(succeed("predict", "run", "tones/1.wav").out))
    several = succeed(*given, "--best", "3", "--attention", "heard.json").out.splitlines()
    assert (len(several), several[0]) == (3, alone)
    (heard,) = json.loads(Path("heard.json").read_text())["examples"]
    frames = 100 * soundfile.info("tones/1.wav").duration
    assert abs(len(heard["source"]) - frames / 2) <= 2, "a second layer reads every other frame"
    assert heard["source"][:2] == ["0.00 s", "0.02 s"]
    assert np.allclose(np.array(heard["weights"]).sum(2), 1, atol=1e-4)
    assert succeed(*given, "--temperature", "2", "--samples", "3").out.count("\n") == 3
    succeed(*given, "--attention", "heard.png")
    assert "--head needs --attention" in refuse(*given, "--head", "1.1")


def test_settings_that_name_columns_say_the_task() -> None:
    write_labels()
    rows = Path("labels.csv").read_text()
    Path("reviews.csv").write_text(rows.replace("text,label", "review;mood").replace(",", ";"))
    named = ("data.text=review", "data.label=mood")
    assert "accuracy" in train("reviews.csv", *named, steps=2)
    assert "no column 'mod' among 'review', 'mood'" in refuse(
        "train", "reviews.csv", named[0], "data.label=mod"
    )
    line = refuse("train", "reviews.csv", *named, "--model", "lstm", "--budget", "1steps")
    assert "data.label is not read, since task.name=language-model" in line


def test_rows_that_cannot_be_used_are_listed() -> None:
    write_pairs()
    with Path("pairs.tsv").open("a") as file:
        file.write("\tnothing before\nnothing after\t\none column\n")
    told = succeed(
        "train", "pairs.tsv", *PAIRS, "--budget", "2steps", "--run", "run", "--model", "translation"
    )
    assert "skipped" in told.err
    rows = [json.loads(line) for line in Path("run/skipped.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    assert all(row["location"].startswith("pairs.tsv, line ") and row["reason"] for row in rows)


def test_bad_input() -> None:
    write_pairs()
    small = (*PAIRS, "--budget", "2steps", "--run", "run")
    Path("a").write_text("one\ntwo\n")
    Path("b").write_text("one\n")
    line = refuse("train", "a,b", *small, "--model", "translation")
    assert "2" in line
    assert "1" in line
    assert "nothing.tsv" in refuse("train", "nothing.tsv", *small, "--model", "translation")
    assert "'source'" in refuse("train", "pairs.tsv", *small, "--model", "translation", "data.source=sorce")
    Path("one.csv").write_text("text,label\n" + "".join(f"a {n},x\n" for n in range(20)))
    assert "at least two classes" in refuse("train", "one.csv", *SMALL, "--budget", "2steps")
    assert "never reads the source" in refuse(
        "train", "pairs.tsv", *small, "--model", "translation", "model.mixers=attention"
    )
    assert "needs an encoder" in refuse("train", "text.txt", "--task", "translation", "--model", "lstm")
    assert "does not read a source" not in refuse(
        "train", "pairs.tsv", *small, "--model", "translation", "model.mixers=x"
    )


def test_a_test_set_that_was_trained_on_is_said() -> None:
    write_pairs()
    told = succeed(
        "train",
        "pairs.tsv",
        *PAIRS,
        "--budget",
        "2steps",
        "--run",
        "run",
        "--model",
        "translation",
        "--test",
        "pairs.tsv",
    )
    assert "are also in the training split" in told.err
