"""Conversion of BERT's tokenizer.json to a Foveal tokenizer."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.core.rust_panics import panics_as_errors
from foveal.data.text.tokenizers import WordPieceTokenizer
from foveal.interop.huggingface.files import HF_TOKENIZER_FILE, read_json


class WordPieceVocabulary(NamedTuple):
    """A tokenizer, and its tokens for Foveal's special tokens `bos`, `eos` and `mask`."""

    tokenizer: WordPieceTokenizer
    special_tokens: tuple[int, int, int]


def read_wordpiece(folder: Path) -> WordPieceVocabulary:
    """Read the tokenizer of a BERT model.

    Raises: UserError: there is no tokenizer, or the tokenizer is not BERT's WordPiece.
    """
    from tokenizers import Tokenizer as Fast

    path = folder / HF_TOKENIZER_FILE
    content = read_json(path)
    _check_bert_tokenizer(content, path)
    try:
        with panics_as_errors():
            fast = Fast.from_str(json.dumps(content | {"truncation": None, "padding": None}))
            bos, eos, mask = (fast.token_to_id(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
            if bos is None or eos is None or mask is None:
                raise ValueError("it needs [CLS], [SEP] and [MASK]")
            if fast.encode("").ids != [bos, eos]:
                raise ValueError("it does not put [CLS] before a text and [SEP] behind it")
            return WordPieceVocabulary(WordPieceTokenizer(fast), (bos, eos, mask))
    except Exception as error:  # the library raises plain Exception
        raise UserError(f"{path}: not a usable tokenizer ({error}); download it again") from None


def _check_bert_tokenizer(content: dict[str, Any], path: Path) -> None:
    """Check that a tokenizer is BERT's WordPiece.

    Raises: UserError: a part of the tokenizer is of another kind.
    """
    types = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    for name, expected in types.items():
        part = content.get(name)
        if not isinstance(part, dict) or part.get("type") != expected:
            raise UserError(f"{path}: its {name} differs from that of BERT's WordPiece, which Foveal needs")
