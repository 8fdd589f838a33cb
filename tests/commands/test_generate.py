"""Writing text with a run."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.generation.request import GenerateRequest
from tests.support.command_line import refuse, run_command, succeed


def texts(*arguments: object) -> list[str]:
    found = json.loads(succeed("generate", *arguments, "--json").out)
    return [one["text"] for one in found["samples"]]


def test_text_goes_to_standard_output_and_nothing_else(finished: Path) -> None:
    told = succeed("generate", finished, "--prompt", "the ", "--tokens", "30")
    assert told.out.startswith("the ")
    assert len(told.out) == 4 + 30 + 1
    assert "30 characters at" in told.err
    assert texts(finished, "--prompt", "the ", "--tokens", "30") == [told.out[4:-1]]


def test_the_object(finished: Path) -> None:
    told = succeed("generate", finished, "--prompt", "the ", "--tokens", "9", "--json")
    found = json.loads(told.out)
    assert (told.err, told.out.count("\n")) == ("", 1)
    assert set(found) == {"run", "samples", "tokens", "seconds", "tokens_per_second"}
    assert found["tokens"] == 9
    (one,) = found["samples"]
    assert set(one) == {"prompt", "text", "log_probability", "reason"}
    assert (one["prompt"], one["reason"]) == ("the ", "limit")
    assert -40 < one["log_probability"] < -9


def test_the_seed_decides(finished: Path) -> None:
    first = texts(finished, "--tokens", "40")
    assert texts(finished, "--tokens", "40") == first
    assert texts(finished, "--tokens", "40", "--seed", "1") != first


def test_greedy_is_beam_one(finished: Path) -> None:
    greedy = texts(finished, "--prompt", "the", "--tokens", "20", "--temperature", "0")
    assert texts(finished, "--prompt", "the", "--tokens", "20", "--temperature", "0", "--seed", "3") == greedy
    assert texts(finished, "--prompt", "the", "--tokens", "20", "--beam", "1") == greedy
    assert texts(finished, "--prompt", "the", "--tokens", "20", "--top-k", "1") == greedy


def test_beam(finished: Path) -> None:
    found = json.loads(
        succeed("generate", finished, "--tokens", "6", "--beam", "4", "--best", "3", "--json").out
    )
    chances = [one["log_probability"] for one in found["samples"]]
    assert len(chances) == 3
    assert chances == sorted(chances, reverse=True)
    told = succeed("generate", finished, "--tokens", "6", "--beam", "4", "--best", "3")
    assert [line for line in told.out.split("\n") if line]
    assert told.err.count("log p") == 3


def test_samples_and_prompts(finished: Path) -> None:
    Path("prompts.txt").write_text("the cat\nand\n")
    wanted = ["--tokens", "12", "--samples", "2"]
    together = texts(finished, "--input", "prompts.txt", *wanted)
    assert len(together) == 4
    assert together[0] != together[1]
    assert together[:2] == texts(finished, "--prompt", "the cat", *wanted)
    told = succeed("generate", finished, "--input", "prompts.txt", *wanted)
    assert told.out == "".join(
        f"{prompt}{text}\n" for prompt, text in zip(["the cat"] * 2 + ["and"] * 2, together, strict=True)
    )


def test_stop(finished: Path) -> None:
    whole = texts(finished, "--tokens", "60")[0]
    stop = whole[20:22]
    (cut,) = texts(finished, "--tokens", "60", "--stop", stop)
    assert cut == whole[: whole.index(stop)]
    (both,) = texts(finished, "--tokens", "60", "--stop", stop, "--stop", whole[5:7])
    assert both == whole[: min(whole.index(stop), whole.index(whole[5:7]))]


def test_characters_never_seen(finished: Path) -> None:
    line = refuse("generate", finished, "--prompt", "Quæ cat")
    assert "the training text has no 'Q', 'æ'" in line
    assert "leave it out, or train with data.tokenizer=byte" in line
    Path("prompts.txt").write_text("the\nThe\n")
    assert "has no 'T'" in refuse("generate", finished, "--input", "prompts.txt")


CONTRADICTIONS = {
    "--prompt a --input text.txt": "--prompt and --input can't both be given",
    "--beam 2 --samples 2": "--best N shows several",
    "--beam 2 --temperature 0.5": "leave out --temperature",
    "--beam 2 --stop x": "leave out --temperature",
    "--best 2": "--best and --length-penalty need --beam",
    "--length-penalty 1": "--best and --length-penalty need --beam",
    "--temperature 0 --samples 2": "--temperature 0 always generates the same text",
    "--temperature -1": "must be 0 (greedy) or more",
    "--top-p 0": "must be above 0 and at most 1",
    "--top-k -1": "must be a number of tokens",
    "--repetition-penalty 0": "must be above 0",
    "--tokens 0": "must be at least 1",
    "--samples 0": "must be at least 1",
    "--beam -1": "--beam at least 0",
    "--input nothing.txt": "nothing.txt: can't read: No such file",
    "--device gpu": "not a device; use cpu",
}


@pytest.mark.parametrize("options", CONTRADICTIONS)
def test_options_that_can_not_be(finished: Path, options: str) -> None:
    assert CONTRADICTIONS[options] in refuse("generate", finished, *options.split())


def test_an_empty_stop_and_an_empty_input(finished: Path) -> None:
    assert "stop string is empty" in refuse("generate", finished, "--stop", "")
    Path("prompts.txt").write_text("")
    assert "prompts.txt: no prompts: write one prompt per line" in refuse(
        "generate", finished, "--input", "prompts.txt"
    )


def test_only_a_line_end_ends_a_prompt() -> None:
    """As in every file of sources; and what is read may be a pipe."""
    text = "\ufeffthe cat\u2028sat\r\nthe \x0bdog\n"
    Path("prompts.txt").write_text(text, newline="")
    os.mkfifo("pipe")
    with ThreadPoolExecutor() as writer:
        writer.submit(Path("pipe").write_text, text, newline="")
        for path in ("prompts.txt", "pipe"):
            assert GenerateRequest("run", input=Path(path)).prompts() == ["the cat\u2028sat", "the \x0bdog"]
    Path("prompts.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(UserError, match=r"prompts\.txt, line 2: "):
        GenerateRequest("run", input=Path("prompts.txt")).prompts()


def test_no_weights_yet(run: Path) -> None:
    (run / "model.safetensors").unlink()
    shutil.rmtree(run / "checkpoints")
    told = run_command("generate", run)
    assert told.code == 2
    assert "no weights yet: continue training with foveal resume" in told.last
