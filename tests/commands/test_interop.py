"""`foveal import` and `foveal export`: runs from model folders and model folders from runs."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import foveal
from foveal.data.text.tokenizers import BPETokenizer, CharacterTokenizer
from foveal.store.sealed import open_tensors
from tests.support.command_line import TINY_MODEL, refuse, relative_paths, succeed

GPT2 = (
    *("model.positions.kind=learned", "model.activation=gelu-tanh"),
    *("model.projection_bias=false", "model.tie_embeddings=true"),
)
MODELS = {"gpt2": ("attention", *GPT2), "mamba": ("mamba",), "rwkv": ("rwkv", "model.layers=2")}
families = pytest.mark.parametrize("family", list(MODELS))


def exported(family: str, *more: str) -> Path:
    """A model folder of a run of a few steps."""
    preset, *settings = MODELS[family]
    budget = ("--budget", "3steps", "--run", "own")
    succeed("train", "text.txt", *TINY_MODEL, *settings, *more, "--model", preset, *budget)
    told = succeed("export", "own", "out", "--json")
    names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert json.loads(told.out) == {"folder": "out", "model_type": family, "files": names}
    return Path("out")


@pytest.mark.slow
@families
def test_a_run_comes_back(family: str) -> None:
    """Exported and imported it has the same logits, tokenizer and text, and is a run like any other."""
    folder = exported(family)
    told = succeed("import", folder, "--run", "back", "--json")
    result = json.loads(told.out)
    ours, back = foveal.load("own"), foveal.load("back")
    assert (result["run"], result["model_type"], result["vocabulary"]) == (
        "back",
        family,
        ours.processor.size,
    )
    assert result["parameters"] == sum(parameter.numel() for parameter in ours.model.parameters())
    assert "foveal train DATA --from back" in told.err
    assert isinstance(back.processor, CharacterTokenizer)
    assert back.processor.digest == ours.processor.digest
    tokens = torch.randint(ours.processor.size, (2, 16))
    with torch.no_grad():
        assert torch.equal(
            back.model.project(back.model(tokens)[0]), ours.model.project(ours.model(tokens)[0])
        )
    _, facts = open_tensors(back.session.run.weights.read_bytes(), "weights")
    assert facts == {"which": "imported", "from": str(folder.absolute()), "model_type": family}
    shutil.rmtree("own")
    shutil.rmtree("out")
    assert len(json.loads(succeed("generate", "back", "--tokens", "5", "--json").out)["samples"]) == 1
    assert json.loads(succeed("evaluate", "back", "text.txt", "--json").out)["loss"] > 0
    go_on = (
        "--from",
        "back",
        "--run",
        "on",
        "--budget",
        "3steps",
        "data.context_length=16",
        "data.batch_tokens=64",
    )
    succeed("train", "text.txt", *go_on)
    assert foveal.load("on").config.optimizer.lr == 1e-4
    succeed("export", "on", "again")
    succeed("import", "again")
    assert foveal.load("runs/again-import-1").model


@pytest.mark.parametrize("settings", ["data.tokenizer=byte", "data.tokenizer=bpe data.vocab_size=300"])
def test_bytes_and_pairs_come_back(settings: str) -> None:
    succeed("import", exported("mamba", *settings.split()), "--run", "back")
    ours, back = foveal.load("own").processor, foveal.load("back").processor
    assert isinstance(back, BPETokenizer)
    assert back.pieces == ours.pieces


@families
def test_transformers_opens_an_exported_run(family: str) -> None:
    transformers = pytest.importorskip("transformers")
    folder = exported(family)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ours = foveal.load("own")
    text = Path("text.txt").read_text()[:16]
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    assert ids[0].tolist() == ours.processor.encode(text).tolist()
    with torch.no_grad():
        expected = ours.model.project(ours.model(ids)[0])
        torch.testing.assert_close(model(ids).logits, expected, rtol=1e-5, atol=1e-5)


def test_an_imported_run_has_no_data(here: Path) -> None:
    succeed("import", exported("mamba"), "--run", "back")
    before = relative_paths(here / "back")
    why = "back: imported, so the run has no data of its own: name other data, or train a new run"
    assert why in refuse("resume", "back")
    assert why in refuse("evaluate", "back")
    assert relative_paths(here / "back") == before


def test_import_refuses(here: Path) -> None:
    folder = exported("gpt2")
    assert "own exists: choose another --run" in refuse("import", folder, "--run", "own")
    assert "nothing: no such folder, and no published weights of that name; known: " in refuse(
        "import", "nothing"
    )
    assert "did you mean 'efficientnet-lite0'" in refuse("import", "efficientnet-lite-0")
    assert "text.txt: no model folder, and no .gguf file: name the folder it is in" in refuse(
        "import", "text.txt"
    )
    assert "own/config.json: can't read" in refuse("import", "own")
    before = relative_paths(here)
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-9])
    assert "out/model.safetensors: not a safetensors file, or cut off" in refuse("import", folder)
    weights.write_bytes(whole)
    (folder / "tokenizer.json").write_text("{")
    assert "out/tokenizer.json: not JSON" in refuse("import", folder)
    (folder / "tokenizer.json").unlink()
    assert "out/tokenizer.json: can't read: No such file" in refuse("import", folder)
    assert relative_paths(here) == before - {"out/tokenizer.json"}


def test_export_refuses(run: Path, here: Path) -> None:
    before = relative_paths(here)
    assert "model.mixers=lstm: Hugging Face has no such model" in refuse("export", run, "out")
    assert "nothing: no such run" in refuse("export", "nothing", "out")
    assert relative_paths(here) == before
    exported("rwkv")
    assert "out exists: name a new folder" in refuse("export", "own", "out")
    (Path("own") / "model.safetensors").unlink()
    assert "own/model.safetensors: missing" in refuse("export", "own", "other")
    assert not Path("other").exists()
