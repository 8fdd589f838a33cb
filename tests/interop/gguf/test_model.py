"""Models in GGUF files: settings, weights and tokenizer; the published Gemma beside Hugging Face's."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import foveal
from foveal.core.errors import UserError
from foveal.data.text.tokenizers import SentencePieceTokenizer, load_tokenizer
from foveal.interop.gguf.file import open_gguf
from foveal.interop.gguf.model import read_gguf_model
from foveal.interop.huggingface.tokenizer import read_tokenizer
from foveal.interop.published.gemma import NAME, PARTS, open_parts
from foveal.models.decoder import language_model
from foveal.models.mixer_settings import resolve_mixer_settings
from foveal.store.cache import cache_folder
from foveal.store.sealed import load_weights
from tests.support.command_line import refuse, succeed
from tests.support.gguf_files import (
    CONFIG,
    CONTEXT,
    SETTINGS,
    TOKENS,
    gguf_bytes,
    small_model,
    tensors_of,
    write_small_gguf,
)

CACHED = cache_folder() / "weights" / f"{NAME}-{PARTS[0].version}"


@torch.no_grad()
def logits(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = model.project(model(tokens)[0])
    return result


def test_weights_and_settings(tmp_path: Path) -> None:
    model, tokenizer = read_gguf_model(open_gguf(write_small_gguf(tmp_path / "x.gguf")))
    assert (model.vocabulary, model.context, model.model_type) == (len(TOKENS), CONTEXT, "gemma3_text")
    assert model.config.norm_epsilon == pytest.approx(1e-6)
    assert model.config.model_copy(update={"norm_epsilon": 1e-6}) == resolve_mixer_settings(CONFIG)
    ours = language_model(model.config, model.vocabulary, model.context).eval()
    load_weights(ours, model.tensors, "x")
    tokens = torch.randint(len(TOKENS), (2, CONTEXT))
    torch.testing.assert_close(logits(ours, tokens), logits(small_model(), tokens))
    assert tokenizer.size == len(TOKENS)


def test_every_sixth_layer_has_no_window(tmp_path: Path) -> None:
    path = write_small_gguf(tmp_path / "x.gguf", block_count=12)
    with pytest.raises(UserError, match=r"no blk\.2\.attn_norm\.weight"):
        read_gguf_model(open_gguf(path))


def tokenizer_of(path: Path) -> SentencePieceTokenizer:
    _, tokenizer = read_gguf_model(open_gguf(write_small_gguf(path / "x.gguf")))
    assert isinstance(tokenizer, SentencePieceTokenizer)
    return tokenizer


def test_the_tokenizer(tmp_path: Path) -> None:
    """Merges in the order of the tokens, runs of spaces and lines whole, other characters as bytes."""
    tokenizer = tokenizer_of(tmp_path)
    names = [TOKENS[i] for i in tokenizer.encode("the cat  the\n\né<eos>").tolist()]
    assert names == ["the", "\u2581cat", "  ", "the", "\n\n", "<0xC3>", "<0xA9>", "<eos>"]
    assert tokenizer.prompt_start == (2,)
    assert tokenizer.end_tokens == {0, 1, 2, 3}
    for text in ("the cat", "  a\n\n\n é\U0001f389 x", "", " "):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        stream = tokenizer.decoder()
        assert "".join(map(stream.push, tokenizer.encode(text).tolist())) + stream.flush() == text
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert isinstance(again, SentencePieceTokenizer)
    assert again.encode("the cat").tolist() == tokenizer.encode("the cat").tolist()
    assert again.prompt_start == (2,)


def test_a_long_text_is_that_of_its_parts(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path)
    text = "the cat\n\nsat on  the mat " * 1000
    parts = tokenizer.encode("the cat\n\nsat on  the mat the cat").tolist()
    tokens = tokenizer.encode(text).tolist()
    assert tokens[: len(parts) - 1] == parts[:-1]
    assert tokenizer.decode(tokens) == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "llama"}, "general.architecture='llama': Foveal reads GGUF files of gemma3 alone"),
        ({"model": "gpt2"}, "its tokenizer (gpt2) differs from Gemma's, which Foveal needs"),
        ({"add_space_prefix": True}, "its tokenizer (llama) differs from Gemma's"),
        ({"tokens": TOKENS[:-1]}, "not as many types and different texts"),
        ({"tokens": [*TOKENS[:-1], "the"]}, "not as many types and different texts"),
        ({"tokens": [1, 2]}, "its tokens are no texts"),
        ({"tokens": [*TOKENS[:-1], "x" * 500]}, "a token of 500 characters"),
        ({"bos_token_id": 9999}, "bos_token_id 9999"),
        ({"bos_token_id": "two"}, "bos_token_id two"),
        ({"head_count": 3}, "attn_q.weight is [64, 32], not [48, 32]"),
        ({"head_count_kv": 3}, "is not a multiple of model.attention.key_heads=3"),
        ({"embedding_length": "wide"}, "hidden_size='wide': expected a whole number"),
        ({"layer_norm_rms_epsilon": -1.0}, "rms_norm_eps=-1.0: expected a number above 0"),
        ({"block_count": 62}, "query_pre_attn_scalar=168: Foveal supports only head_dim=16"),
        ({"block_count": 3}, "no blk.2.attn_norm.weight"),
        ({"block_count": 1 << 12}, "4096 layers, but"),
    ],
)
def test_what_differs_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write_small_gguf(tmp_path / "x.gguf", **changes)
    with pytest.raises(UserError) as error:
        read_gguf_model(open_gguf(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_that_are_missing_or_more(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    for name in SETTINGS:
        path.write_bytes(gguf_bytes({key: SETTINGS[key] for key in SETTINGS if key != name}, {}))
        with pytest.raises(UserError) as error:
            read_gguf_model(open_gguf(path))
        assert "\n" not in str(error.value)
    more = {"gemma3.rope.scaling.type": "linear", "gemma3.final_logit_softcapping": 30.0}
    for name, value in more.items():
        path.write_bytes(gguf_bytes(SETTINGS | {name: value}, tensors_of(small_model())))
        with pytest.raises(UserError, match="Foveal supports only None"):
            read_gguf_model(open_gguf(path))


def test_import_and_generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt begins with <bos>, and the run generates as the model that was written."""
    monkeypatch.chdir(tmp_path)
    write_small_gguf(tmp_path / "small.gguf")
    assert "gemma3_text: 2 x attention, width 32" in succeed("import", "small.gguf", "--run", "gemma").err
    run = foveal.load("gemma")
    tokens = torch.tensor([[2, *run.processor.encode("the cat").tolist()]])
    torch.testing.assert_close(logits(run.model, tokens), logits(small_model(), tokens))
    likeliest = int(logits(small_model(), tokens)[0, -1].argmax())
    (text,) = run.generate("the cat", tokens=1, temperature=0.0).values["samples"]
    assert text["text"] == run.processor.decode([likeliest] if likeliest > 3 else [])
    (shot,) = run.generate("the", tokens=3, shots=[("a", "b")]).values["samples"]
    assert shot["prompt"] == "input: a\noutput: b\n\ninput: the\noutput:"


def test_export_and_import_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that transformers opens, with the tokenizer."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    succeed("import", write_small_gguf(tmp_path / "small.gguf"), "--run", "gemma")
    succeed("export", "gemma", "folder")
    text = "the cat  the\n\n\u00e9 x"
    tokens = [2, *foveal.load("gemma").processor.encode(text).tolist()]
    their_tokenizer = transformers.AutoTokenizer.from_pretrained("folder")
    assert their_tokenizer(text).input_ids == tokens
    assert their_tokenizer.decode(tokens[1:]) == text
    theirs = transformers.AutoModelForCausalLM.from_pretrained("folder").eval()
    with torch.no_grad():
        expected = theirs(torch.tensor([tokens])).logits
    torch.testing.assert_close(logits(small_model(), torch.tensor([tokens])), expected, rtol=1e-4, atol=1e-4)
    succeed("import", "folder", "--run", "again")
    again = foveal.load("again")
    assert again.processor.encode(text).tolist() == tokens[1:]
    assert again.processor.prompt_start == (2,)
    torch.testing.assert_close(logits(again.model, torch.tensor([tokens])), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normalizer", None),
        ("normalizer", {"type": "NFC"}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("pre_tokenizer", 7),
        ("model", {"type": "Unigram", "byte_fallback": True}),
    ],
)
def test_a_folder_with_another_tokenizer(tmp_path: Path, part: str, value: Any) -> None:
    content = json.loads(tokenizer_of(tmp_path).to_json()) | {part: value}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        read_tokenizer(tmp_path, len(TOKENS))
    assert f"its {part} differs from that of Gemma's SentencePiece" in str(error.value)


def test_a_folder_with_tokens_beyond_the_model(tmp_path: Path) -> None:
    """Those of images are left out; a damaged list is one line."""
    whole = json.loads(tokenizer_of(tmp_path).to_json())
    image = whole["added_tokens"][0] | {"id": len(TOKENS), "content": "<image>"}
    content = whole | {"added_tokens": [*whole["added_tokens"], image]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert read_tokenizer(tmp_path, len(TOKENS)).size == len(TOKENS)
    several: list[Any] = [[1], [{}], "x", [{"id": "a"}]]
    for damaged in several:
        (tmp_path / "tokenizer.json").write_text(json.dumps(whole | {"added_tokens": damaged}))
        with pytest.raises(UserError, match="not a usable tokenizer"):
            read_tokenizer(tmp_path, len(TOKENS))


def test_a_bad_file_makes_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.gguf").write_bytes(b"GGUF")
    message = refuse("import", "bad.gguf", "--run", "gemma")
    assert message == "foveal: bad.gguf: not a GGUF file, or cut off (it ends at byte 4); get it again\n"
    assert not Path("gemma").exists()


@pytest.mark.slow
@pytest.mark.skipif(not CACHED.is_dir(), reason=f"no published weights in {CACHED}: foveal import {NAME}")
def test_the_published_model_is_that_of_transformers(tmp_path: Path) -> None:
    """Tokens and logits, with windows that end within the text."""
    transformers = pytest.importorskip("transformers")
    for package in ("gguf", "accelerate"):
        pytest.importorskip(package)
    file = open_parts(CACHED)
    (tmp_path / "gemma.gguf").write_bytes(file.content)
    imported, tokenizer = read_gguf_model(file)
    model = language_model(imported.config, imported.vocabulary, imported.context).eval()
    load_weights(model, imported.tensors, NAME)
    where = {"gguf_file": "gemma.gguf"}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, **where).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, **where)
    text = Path(__file__).read_text() + "  naïve “quotes”\t\t日本語 🎉\n\n\n<start_of_turn>"
    tokens = [*(tokenizer.prompt_start), *tokenizer.encode(text).tolist()]
    assert tokens == their_tokenizer(text).input_ids
    assert tokenizer.decode(tokens[1:]) == text
    ids = torch.tensor([tokens[:700]])
    with torch.no_grad():
        expected = theirs(ids).logits
    assert expected.std() > 3
    torch.testing.assert_close(logits(model, ids), expected, rtol=0, atol=1e-3)
