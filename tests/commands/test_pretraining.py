"""Pretraining on raw text, then one's own labels: what is taken from a run, what is new, what stays."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import foveal
from foveal.tasks.session import build_model
from tests.support.command_line import refuse, succeed
from tests.support.reviews import SMALL, reviews
from tests.support.saved_weights import saved_weights


def pretrained(*more: str) -> str:
    short = ("--budget", "10steps", "--run", "first", "--json")
    told = succeed("train", "text.txt", "--task", "masked-lm", *SMALL, *more, *short)
    result = json.loads(told.out)
    assert 0 <= result["accuracy"] <= 1
    return "first"


def finetune(*more: str) -> dict[str, Any]:
    told = succeed("train", reviews(), "--from", "first", "--task", "text-classification", "--json", *more)
    result: dict[str, Any] = json.loads(told.out)
    return result


@pytest.mark.slow
def test_mask_then_classify() -> None:
    """Encoder and tokenizer go on, the head is new; the linear head alone leaves the encoder as it is."""
    pretrained()
    samples = Path("first/samples.jsonl").read_text().splitlines()
    assert "_" in json.loads(samples[0])["text"]
    before = saved_weights("first")
    finetune("--run", "head", "training.freeze=encoder", "--budget", "6steps", "optimizer.lr=0.1")
    after = saved_weights("head")
    encoder = {name for name in after if name.startswith("encoder.")}
    assert encoder == {name for name in before if name.startswith("encoder.")}
    assert all(torch.equal(after[name], before[name]) for name in encoder)
    head: Any = build_model(foveal.load("head").task, torch.device("cpu")).get_submodule("head")
    assert not torch.equal(after["head.projection.weight"], head.projection.weight)
    assert foveal.load("head").processor.source.digest == foveal.load("first").processor.digest
    result = finetune("--run", "all", "--budget", "60steps", "optimizer.lr=6e-3", "optimizer.name=adamw")
    assert result["accuracy"] > 0.9
    assert not torch.equal(saved_weights("all")["encoder.embedding.table"], before["encoder.embedding.table"])
    assert json.loads(succeed("evaluate", "all", "--json").out)["loss"] == result["loss"]


def test_what_is_said() -> None:
    pretrained()
    told = succeed(
        "train", reviews(), "--from", "first", "--task", "text-classification", "--budget", "2steps"
    )
    assert "the encoder of first; the head is new" in told.err
    told = succeed("train", "text.txt", "--from", "first", "--budget", "2steps", "training.freeze=encoder")
    assert "all weights of first" in told.err
    assert "of them trained" in told.err


def test_fewer_positions() -> None:
    """A run of learned positions goes on with the first of them."""
    pretrained("model.encoder.positions.kind=learned", "data.max_length=48")
    finetune("--run", "on", "--budget", "1steps", "data.max_length=40", "optimizer.lr=1e-9")
    table = "encoder.stack.positioned.position.table"
    torch.testing.assert_close(
        saved_weights("on")[table], saved_weights("first")[table][:40], rtol=0, atol=1e-6
    )
    why = refuse("train", reviews(), "--from", "first", "--task", "text-classification", "data.max_length=49")
    assert "learned positions end at 48, but 49 are needed; lower data.max_length" in why


def test_refusals() -> None:
    pretrained()
    data = reviews()
    changed = refuse(
        "train", data, "--from", "first", "--task", "text-classification", "model.encoder.width=32"
    )
    assert "first: its encoder does not fit" in changed
    assert "training.freeze=encoder" in refuse("train", "text.txt", "training.freeze=encoder")


LANGUAGE = {
    "gru": ("model.mixers=gru", "model.embedding_width=8"),
    "positions": ("model.mixers=attention", "model.positions.kind=learned", "model.tie_embeddings=true"),
    "window": ("model.mixers=attention", "model.attention.window=4", "model.positions.kind=rotary"),
    "mamba": ("model.mixers=mamba",),
    "rwkv": ("model.mixers=rwkv", "model.feedforward=channel-mixing", "model.embedding_norm=true"),
}


def written(mixer: str, *more: str) -> str:
    """A run of a language model."""
    residual = () if mixer == "gru" else ("model.residual=true", "model.norm=layer")
    small = ("model.width=16", "model.layers=2", "model.embedding_width=0")
    text = ("data.tokenizer=character", "data.context_length=32", "data.batch_tokens=256")
    order = ("task.batching=windows",)
    given = (*small, *text, *order, *residual, *LANGUAGE.get(mixer, ()), *more)
    succeed("train", "text.txt", *given, "--budget", "10steps", "--run", "first")
    return "first"


@pytest.mark.slow
@pytest.mark.parametrize("mixer", LANGUAGE)
def test_a_language_model_reads(mixer: str) -> None:
    """As an encoder it makes of a text what it made as a language model; then it learns one's labels."""
    written(mixer)
    told = succeed(
        *(
            "train",
            reviews(),
            "--from",
            "first",
            "--task",
            "text-classification",
            "--run",
            "read",
            "--budget",
            "1steps",
        ),
        "optimizer.lr=1e-12",
    )
    assert "the encoder of first; the head is new" in told.err
    first, read = foveal.load("first"), foveal.load("read")
    assert read.processor.source.digest == first.processor.digest
    tokens = torch.from_numpy(first.processor.encode("the cat is mat").astype("int64"))[None]
    features, _, _ = first.model.eval()(tokens)
    memory, _ = read.model.eval().encoder(tokens)
    torch.testing.assert_close(memory.vectors, features, rtol=1e-4, atol=1e-5)
    if mixer in ("gru", "positions"):
        result = finetune("--run", "on", "--budget", "80steps", "optimizer.lr=1e-2", "optimizer.name=adamw")
        assert result["accuracy"] > 0.9


def test_a_language_model_looks_both_ways_if_told() -> None:
    written("positions")
    both = ("model.encoder.causal=false", "--budget", "1steps", "--run", "both")
    assert (
        "the encoder of first"
        in succeed("train", reviews(), "--from", "first", "--task", "text-classification", *both).err
    )
    assert not foveal.load("both").config.model.encoder.causal


@pytest.mark.slow
def test_what_a_language_model_can_not_be() -> None:
    written("gru", "model.embedding_width=-1")
    classify = ("train", reviews(), "--from", "first", "--task", "text-classification")
    assert "first: its tokens are one-hot" in refuse(*classify)
    Path("first").rename("letters")
    written("gru")
    assert "its encoder does not fit" in refuse(*classify, "model.encoder.width=32")
    assert "data.tokenizer" in refuse(*classify, "data.tokenizer=byte")
    assert "set model.encoder.bidirectional=false" in refuse(*classify, "model.encoder.bidirectional=true")


def test_a_folder_of_berts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Imported without a head it says so, and learns one's own labels."""
    pytest.importorskip("transformers")
    from tests.support.small_bert import small_bert

    folder = small_bert(tmp_path_factory.mktemp("bert"), with_head=False)
    told = succeed("import", folder, "--run", "first")
    assert "none: train one" in told.err
    assert "foveal train DATA --from first --task TASK" in told.err
    for command in (("evaluate", "first", "text.txt"), ("evaluate", "first")):
        why = refuse(*command)
        assert "first: an encoder without a head" in why or "imported, so it has no data" in why
    told = succeed("train", reviews(), "--from", "first", "--run", "labels", "--budget", "1steps")
    assert "taken as text-classification because there are the columns text and label" in told.err
    result = finetune("--run", "on", "--budget", "30steps", "optimizer.lr=3e-3", "data.max_length=40")
    assert result["accuracy"] > 0.6
    succeed(
        "train",
        "text.txt",
        "--from",
        "first",
        "--run",
        "mask",
        "--budget",
        "2steps",
        "data.context_length=24",
    )
    assert json.loads(succeed("evaluate", "mask", "text.txt", "--json").out)["loss"] > 0


def test_a_folder_of_berts_with_a_head(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("transformers")
    from tests.support.small_bert import small_bert

    succeed("import", small_bert(tmp_path_factory.mktemp("bert"), with_head=True), "--run", "first")
    assert json.loads(succeed("evaluate", "first", "text.txt", "--json").out)["loss"] > 0
