"""Conversion between Hugging Face's tokenizer.json and Foveal's tokenizers."""

import json
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.rust_panics import panics_as_errors
from foveal.data.text.subword_tokenizers import bytes_to_unicode
from foveal.data.text.tokenizers import BPETokenizer, ByteTokenizer, CharacterTokenizer, Tokenizer
from foveal.interop.huggingface.files import HF_TOKENIZER_FILE, read_json
from foveal.interop.huggingface.sentencepiece import read_sentencepiece

ANY_CHARACTER = r"[\s\S]"


def read_tokenizer(folder: Path, vocabulary: int) -> Tokenizer:
    """Read the tokenizer of a model of `vocabulary` tokens: byte-level BPE, Gemma's SentencePiece, or
    characters that Foveal exported.

    Models often have more tokens than their tokenizer, because their sizes are rounded up. The missing tokens
    are added as `<unused N>`.

    Raises: UserError: the tokenizer is of another kind, or has more tokens than the model.
    """
    path = folder / HF_TOKENIZER_FILE
    content = read_json(path)
    model = content.get("model")
    if not isinstance(model, dict):
        raise UserError(f"{path}: not a tokenizer: it has no model; download the folder again")
    if model.get("type") == "WordLevel":
        tokenizer: Tokenizer = CharacterTokenizer(_read_characters(model, path))
    elif model.get("byte_fallback"):
        tokenizer = read_sentencepiece(content, path, vocabulary)
    else:
        _check_byte_level_bpe(content, model, path)
        tokenizer = _read_byte_level_bpe(content, path, vocabulary)
    if tokenizer.size != vocabulary:
        raise UserError(f"{path}: {tokenizer.size} tokens, but the model has {vocabulary}")
    return tokenizer


def tokenizer_files(tokenizer: Tokenizer) -> dict[str, bytes]:
    """Return tokenizer.json, and the config with which transformers' AutoTokenizer opens this file."""
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {
        HF_TOKENIZER_FILE: _to_json(tokenizer).encode(),
        "tokenizer_config.json": json.dumps(config, indent=2).encode() + b"\n",
    }


def _to_json(tokenizer: Tokenizer) -> str:
    from tokenizers import Regex, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Fast

    if isinstance(tokenizer, CharacterTokenizer):
        fast = Fast(models.WordLevel(_token_ids(tokenizer.vocabulary), unk_token="<unk>"))
        fast.pre_tokenizer = pre_tokenizers.Split(Regex(ANY_CHARACTER), "isolated")
        fast.decoder = decoders.Fuse()
    elif isinstance(tokenizer, ByteTokenizer):
        fast = Fast(models.BPE(_token_ids(bytes_to_unicode()), []))
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        fast.decoder = decoders.ByteLevel()
    elif tokenizer.kind == "word":
        raise UserError("data.tokenizer=word: Hugging Face has no tokenizer that skips unknown words")
    else:
        return tokenizer.to_json()
    return str(fast.to_str())


def _token_ids(letters: str) -> dict[str, int]:
    return {letter: i for i, letter in enumerate(letters)}


def _read_characters(model: dict[str, Any], path: Path) -> str:
    """Return the vocabulary that `_to_json` wrote.

    Raises: UserError: tokens are not single characters.
    """
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict) and all(len(token) == 1 for token in vocabulary):
        letters = "".join(sorted(vocabulary))
        if vocabulary == _token_ids(letters):
            return letters
    raise UserError(
        f"{path}: a tokenizer of words; Foveal can import only byte-level BPE, Gemma's and single characters"
    )


def _check_byte_level_bpe(content: dict[str, Any], model: dict[str, Any], path: Path) -> None:
    """Check that a tokenizer is byte-level BPE like GPT-2's, which splits text before white space.

    Raises: UserError: a part of the tokenizer is of another kind.
    """
    pre_tokenizer, post_processor, normalizer = (
        part if isinstance(part, dict) else {"type": part}
        for part in map(content.get, ("pre_tokenizer", "post_processor", "normalizer"))
    )
    adds_nothing = (
        post_processor.get("type") == "TemplateProcessing" and post_processor.get("special_tokens") == {}
    )
    as_in_gpt2 = {
        "model": model.get("type") == "BPE" and not model.get("dropout"),
        "pre_tokenizer": pre_tokenizer.get("type") == "ByteLevel"
        and pre_tokenizer.get("add_prefix_space") is False
        and pre_tokenizer.get("use_regex", True) is True,
        "post_processor": post_processor.get("type", "?") in (None, "ByteLevel") or adds_nothing,
        "normalizer": normalizer.get("type", "?") in (None, "NFC"),
    }
    for name, same in as_in_gpt2.items():
        if not same:
            raise UserError(
                f"{path}: its {name} differs from that of GPT-2's byte-level BPE, which Foveal needs"
            )


def _read_byte_level_bpe(content: dict[str, Any], path: Path, vocabulary: int) -> BPETokenizer:
    from tokenizers import AddedToken
    from tokenizers import Tokenizer as Fast

    try:
        with panics_as_errors():
            fast = Fast.from_str(json.dumps(content | {"truncation": None, "padding": None}))
            if fast.get_vocab_size() > 0 and fast.id_to_token(fast.get_vocab_size() - 1) is None:
                raise ValueError("its token ids have gaps")
            unused = range(fast.get_vocab_size(), vocabulary)
            fast.add_tokens([AddedToken(f"<unused {i}>", normalized=False) for i in unused])
            return BPETokenizer(fast)
    except Exception as error:  # the library raises plain Exception
        raise UserError(f"{path}: not a usable tokenizer ({error}); download it again") from None
