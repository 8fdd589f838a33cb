"""Hugging Face's BERT and our encoder give the same vectors for the same text; all else is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from tokenizers import Tokenizer as Fast
from torch import nn

from foveal.core.errors import UserError
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_source import encode_text
from foveal.data.text.tokenizers import WordPieceTokenizer, load_tokenizer
from foveal.data.text.words_source import encode_words
from foveal.heads.masked_lm import MaskedLMHead
from foveal.interop.huggingface.bert import read_bert
from foveal.interop.huggingface.language_models import ImportedTextModel
from foveal.interop.huggingface.wordpiece import WordPieceVocabulary, read_wordpiece
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.store.sealed import load_weights
from tests.support.small_bert import LONGEST, SENTENCES, D, small_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bert(tmp_path_factory.mktemp("bert"))


def opened(folder: Path) -> tuple[WordPieceVocabulary, ImportedTextModel, EncoderWithHead]:
    known = read_wordpiece(folder)
    found = read_bert(folder, known)
    sizes, vocabulary = found.config.encoder, SpecialTokens(known.tokenizer.size).vocab_size
    encoder: Any = text_encoder(sizes, vocabulary, found.context)
    head = MaskedLMHead(D, vocabulary, encoder.embedding.table, sizes.activation, sizes.norm_epsilon)
    model = EncoderWithHead(encoder, head)
    if found.has_head:
        load_weights(model, found.tensors, str(folder))
    else:
        own = {name.removeprefix("encoder."): tensor for name, tensor in found.tensors.items()}
        load_weights(encoder, own, str(folder))
    return known, found, model.eval()


def batch(known: WordPieceVocabulary) -> tuple[torch.Tensor, torch.Tensor]:
    """Our tokens of the sentences, and lengths."""
    rows = [encode_text(sentence, known.tokenizer, LONGEST) for sentence in SENTENCES]
    lengths = torch.tensor([len(row) for row in rows])
    tokens = [torch.from_numpy(row) for row in rows]
    return nn.utils.rnn.pad_sequence(tokens, batch_first=True), lengths


@torch.no_grad()
def same_vectors(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    fast = Fast.from_file(str(folder / "tokenizer.json"))
    fast.enable_padding()
    encodings = fast.encode_batch(SENTENCES)
    ids, mask = (torch.tensor([getattr(e, part) for e in encodings]) for part in ("ids", "attention_mask"))
    expected = theirs(input_ids=ids, attention_mask=mask).last_hidden_state
    known, _, model = opened(folder)
    tokens, lengths = batch(known)
    assert lengths.tolist() == mask.sum(1).tolist()
    assert len(set(lengths.tolist())) > 3
    memory, _ = model.encoder(tokens, lengths)
    there = mask.bool()
    assert expected[there].std() > 0.3
    torch.testing.assert_close(memory.vectors[there], expected[there], rtol=1e-5, atol=1e-5)
    assert not memory.vectors[~there].any()
    weights = mask[:, :, None].float()  # sentence-transformers' mean pooling
    pooled = (expected * weights).sum(1) / weights.sum(1)
    torch.testing.assert_close(memory.summary, pooled, rtol=1e-5, atol=1e-5)


def test_the_same_vectors(folder: Path) -> None:
    """Sentences of several lengths, each alone and in a batch; the tokens are the library's."""
    same_vectors(folder)


@torch.no_grad()
def test_the_same_vectors_of_two_segments(folder: Path) -> None:
    """An imported model has the first segment in its positions; a model with segments reads both."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    known, found, model = opened(folder)
    sizes = found.config.encoder.model_copy(update={"segments": 2})
    encoder: Any = text_encoder(sizes, SpecialTokens(known.tokenizer.size).vocab_size, found.context)
    types, positions = (
        getattr(theirs.embeddings, f"{name}_embeddings").weight for name in ("token_type", "position")
    )
    own = {"segments.table": types, "stack.positioned.position.table": positions}
    encoder.load_state_dict(model.encoder.state_dict() | own)
    ids, lengths = torch.randint(known.tokenizer.size, (2, 6)), torch.tensor([6, 6])
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [1, 0, 1, 0, 1, 0]])
    expected = theirs(input_ids=ids, token_type_ids=segments).last_hidden_state
    memory, _ = encoder.eval()(ids, lengths, segments)
    torch.testing.assert_close(memory.vectors, expected, rtol=1e-5, atol=1e-5)
    first, _ = encoder(ids, lengths)
    torch.testing.assert_close(first.vectors, model.encoder(ids, lengths)[0].vectors, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_the_same_guesses(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    known, found, model = opened(folder)
    assert found.has_head
    size = known.tokenizer.size
    tokens, lengths = batch(known)
    tokens, lengths = tokens[:1], lengths[:1]
    hidden = torch.zeros_like(tokens, dtype=torch.bool)
    hidden[0, [2, 5]] = True
    ours = torch.where(hidden, SpecialTokens(size).mask, tokens)
    as_theirs = torch.tensor([*range(size), *known.special_tokens])[ours]
    expected = theirs(input_ids=as_theirs).logits[hidden]
    features, _ = model.head(model.encoder(ours, lengths)[0], hidden)
    logits = model.head.project(features)
    assert expected.std() > 0.3
    torch.testing.assert_close(logits[:, :size], expected[:, :size], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        logits[:, size:], expected[:, list(known.special_tokens)], rtol=1e-5, atol=1e-5
    )


def rewritten(folder: Path, into: Path, rename: Any) -> Path:
    """A copy whose tensors have other names; None leaves one out."""
    shutil.copytree(folder, into)
    path = into / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    renamed = {rename(name): tensor for name, tensor in tensors.items()}
    renamed.pop(None, None)
    safetensors.torch.save_file(renamed, path, {"format": "pt"})
    return into


def test_files_of_bare_models(folder: Path, tmp_path: Path) -> None:
    """Without a head; with a pooler and position numbers, under the names of old."""

    def bare(name: str) -> str | None:
        return name.removeprefix("bert.") if name.startswith("bert.") else None

    made = rewritten(folder, tmp_path / "bare", bare)
    path = made / "model.safetensors"
    more = {"pooler.dense.weight": torch.ones(D, D), "embeddings.position_ids": torch.arange(LONGEST)[None]}
    safetensors.torch.save_file(safetensors.torch.load_file(path) | more, path, {"format": "pt"})
    same_vectors(made)
    assert not opened(made)[1].has_head

    def old(name: str) -> str:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    aged = rewritten(folder, tmp_path / "old", old)
    for name, tensor in opened(aged)[1].tensors.items():
        assert torch.equal(tensor, opened(folder)[1].tensors[name])


@pytest.mark.parametrize("more", [{"hidden_act": "relu"}, {"layer_norm_eps": 1e-2}, {"type_vocab_size": 1}])
def test_other_settings(more: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other")
    path = tmp_path / "other/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    if "type_vocab_size" in more:
        weights = tmp_path / "other/model.safetensors"
        tensors = safetensors.torch.load_file(weights)
        name = "bert.embeddings.token_type_embeddings.weight"
        tensors[name] = tensors[name][:1].clone()
        safetensors.torch.save_file(tensors, weights, {"format": "pt"})
    same_vectors(tmp_path / "other")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"is_decoder": True}, "is_decoder=True: Foveal supports only False"),
        ({"position_embedding_type": "relative_key"}, "Foveal supports only absolute"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False: Foveal supports only True"),
        ({"hidden_act": "silu"}, "hidden_act='silu': Foveal supports only gelu_new, gelu"),
        (
            {"num_attention_heads": 3},
            "model.encoder.width=16 is not a multiple of model.encoder.attention.heads=3",
        ),
        ({"num_hidden_layers": 2}, " is not in such a model; and 13 more"),
        ({"num_hidden_layers": 4}, "no encoder.layer.3.attention.self.query.weight"),
        ({"num_hidden_layers": 1 << 19}, "model.encoder.layers=524288: Input should be less than"),
        ({"vocab_size": 7}, "vocab_size=7, but its tokenizer has"),
        ({"max_position_embeddings": 41}, "embeddings.position_embeddings.weight is [40, 16], not [41, 16]"),
        ({"layer_norm_eps": 0}, "model.encoder.norm_epsilon=0.0: Input should be greater than 0"),
    ],
)
def test_settings_that_are_not_ours(
    setting: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "other")
    path = tmp_path / "other/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | setting))
    with pytest.raises(UserError) as told:
        read_bert(tmp_path / "other", read_wordpiece(folder))
    assert message in str(told.value)
    assert len(str(told.value)) < 400


def test_word_pieces(folder: Path, tmp_path: Path) -> None:
    """The library's tokens; texts come back in lower case, a space before each word."""
    fast, ours = Fast.from_file(str(folder / "tokenizer.json")), read_wordpiece(folder).tokenizer
    text = " ".join(SENTENCES) + "\n\tÉté, zyzzyva!  東京 \u0000"
    ids = ours.encode(text)
    assert ids.tolist() == fast.encode(text, add_special_tokens=False).ids
    assert ours.decode(ours.encode("The  cat's mát,\n")) == " the cat ' s mat ,"
    assert len(ours.encode("unforeseeable")) < len("unforeseeable")
    assert ours.add_bos
    long = " ".join(SENTENCES * 100)
    assert ours.encode(long).tolist() == fast.encode(long, add_special_tokens=False).ids
    ours.save(tmp_path)
    back = load_tokenizer(tmp_path)
    assert isinstance(back, WordPieceTokenizer)
    assert back.digest == ours.digest
    assert np.array_equal(back.encode(text), ids)


def test_tags_stand_at_the_first_piece_of_each_word(folder: Path) -> None:
    known = read_wordpiece(folder)
    words = ["The", "unforeseeable", "mat", ",", "café's"]
    tokens, places = encode_words(words, known.tokenizer)
    marks = SpecialTokens(known.tokenizer.size)
    assert (tokens[0], tokens[-1]) == (marks.bos, marks.eos)
    for word, place in zip(words, places, strict=True):
        assert tokens[place] == known.tokenizer.encode(word)[0]


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("model", {"type": "BPE"}, "its model differs from that of BERT's WordPiece"),
        ("normalizer", None, "its normalizer differs from that of BERT's WordPiece"),
        ("pre_tokenizer", {"type": "Whitespace"}, "its pre_tokenizer differs from that of BERT's WordPiece"),
        ("post_processor", None, "it does not put [CLS] before a text and [SEP] behind it"),
    ],
)
def test_tokenizers_that_are_not_ours(
    part: str, value: Any, message: str, folder: Path, tmp_path: Path
) -> None:
    content = json.loads((folder / "tokenizer.json").read_text()) | {part: value}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as told:
        read_wordpiece(tmp_path)
    assert message in str(told.value)
