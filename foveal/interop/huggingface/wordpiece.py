"""BERT's tokenizer.json to a tokenizer of ours."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.data.text.tokenizers import WordPieceTokenizer
from foveal.interop.huggingface.files import HF_TOKENIZER_FILE, read_json


class WordPieceVocabulary(NamedTuple):
    """A tokenizer, and which of its tokens are our `start`, `stop` and `mask`."""

    tokenizer: WordPieceTokenizer
    special_tokens: tuple[int, int, int]


def read_wordpiece(folder: Path) -> WordPieceVocabulary:
    """The tokenizer of a BERT. UserError if there is none, or it is another than WordPiece as BERT's."""
    from tokenizers import Tokenizer as Fast

    path = folder / HF_TOKENIZER_FILE
    content = read_json(path)
    _check_bert_tokenizer(content, path)
    try:
        fast = Fast.from_str(json.dumps(content | {"truncation": None, "padding": None}))
        start, stop, mask = (fast.token_to_id(mark) for mark in ("[CLS]", "[SEP]", "[MASK]"))
        if start is None or stop is None or mask is None:
            raise ValueError("it needs [CLS], [SEP] and [MASK]")
        if fast.encode("").ids != [start, stop]:
            raise ValueError("it does not put [CLS] before a text and [SEP] behind it")
        return WordPieceVocabulary(WordPieceTokenizer(fast), (start, stop, mask))
    except Exception as error:  # the library raises plain Exception
        raise UserError(f"{path}: not a tokenizer that can be used ({error}); get it anew") from None


def _check_bert_tokenizer(content: dict[str, Any], path: Path) -> None:
    kinds = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    for part, kind in kinds.items():
        found = content.get(part)
        if not isinstance(found, dict) or found.get("type") != kind:
            raise UserError(f"{path}: its {part} is not that of WordPiece as BERT's, which ours is")
