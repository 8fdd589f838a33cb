"""Conversion of Gemma's tokenizer.json, SentencePiece's byte-pair encoding, to a Foveal tokenizer."""

import json
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.rust_panics import panics_as_errors
from foveal.data.text.subword_tokenizers import SPACE, SentencePieceTokenizer

NORMALIZER = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PRE_TOKENIZER = {
    "type": "Split",
    "pattern": {"String": " "},
    "behavior": "MergedWithPrevious",
    "invert": False,
}
"""Splits nothing: there are no spaces behind the normalizer."""


def read_sentencepiece(content: dict[str, Any], path: Path, vocabulary: int) -> SentencePieceTokenizer:
    """Return the tokenizer in the content of the file `path`, for a model of `vocabulary` tokens.

    Tokens beyond those of the model, such as those that stand for images, are left out.

    Raises: UserError: the tokenizer differs from Gemma's, or can't be used.
    """
    from tokenizers import Tokenizer as Fast

    as_in_gemma = {
        "model": content["model"].get("type") == "BPE" and not content["model"].get("dropout"),
        "normalizer": content.get("normalizer") == NORMALIZER,
        "pre_tokenizer": content.get("pre_tokenizer") in (None, PRE_TOKENIZER),
    }
    for name, same in as_in_gemma.items():
        if not same:
            raise UserError(
                f"{path}: its {name} differs from that of Gemma's SentencePiece, which Foveal needs"
            )
    try:
        with panics_as_errors():
            own = [token for token in content.get("added_tokens") or [] if token["id"] < vocabulary]
            whole = content | {"added_tokens": own, "truncation": None, "padding": None}
            return SentencePieceTokenizer(Fast.from_str(json.dumps(whole)))
    except Exception as error:  # the library raises plain Exception
        raise UserError(f"{path}: not a usable tokenizer ({error}); download it again") from None
