"""The SentencePiece vocabulary of a GGUF file as a tokenizer."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from foveal.core.rust_panics import panics_as_errors
from foveal.data.text.subword_tokenizers import SPACE, SentencePieceTokenizer
from foveal.interop.gguf.file import GGUFFile, damaged

KIND = "llama"
"""The name of SentencePiece's byte-pair encoding in GGUF files."""
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""Types of tokens: merged from pairs, never in a text, and always whole."""
MAX_PIECE = 200
"""Characters of a longest token: the pairs that make it are looked for at each of them."""


def read_tokenizer(file: GGUFFile) -> SentencePieceTokenizer:
    """Return the tokenizer of a file.

    Raises: UserError: it is of another kind, or damaged.
    """
    from tokenizers import Tokenizer as Fast

    kind = file.setting("tokenizer.ggml.model")
    if kind != KIND or file.metadata.get("tokenizer.ggml.add_space_prefix") is not False:
        raise file.error(f"its tokenizer ({str(kind)[:40]}) differs from Gemma's, which Foveal needs")
    tokens, types = file.setting("tokenizer.ggml.tokens"), file.setting("tokenizer.ggml.token_type")
    _check_tokens(file, tokens, types)
    start = file.setting("tokenizer.ggml.bos_token_id")
    if type(start) is not int or not 0 <= start < len(tokens):
        raise damaged(file.path, f"bos_token_id {str(start)[:40]}")
    try:
        with panics_as_errors():
            fast = Fast.from_str(json.dumps(_to_json(tokens, types, start)))
            return SentencePieceTokenizer(fast)
    except Exception as error:  # the library raises plain Exception
        raise damaged(file.path, f"not a usable tokenizer: {error}") from None


def _check_tokens(file: GGUFFile, tokens: Any, types: Any) -> None:
    """Check that tokens are different texts, and that each has a type.

    Raises: UserError: they are not.
    """
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise damaged(file.path, "its tokens are no texts")
    if not isinstance(types, list) or len(types) != len(tokens) or len({*tokens}) != len(tokens):
        raise damaged(file.path, f"{len(tokens):,} tokens, and not as many types and different texts")
    if max(map(len, tokens), default=0) > MAX_PIECE:
        raise damaged(file.path, f"a token of {max(map(len, tokens)):,} characters")


def _to_json(tokens: Sequence[str], types: Sequence[int], start: int) -> dict[str, Any]:
    """Return the tokenizer for the library `tokenizers`.

    Files have runs of spaces as spaces, and no merges: each way to make a token of two others is one. The
    tokens stand in the order of their merges.
    """
    pieces = [token if token.strip(" ") else SPACE * len(token) for token in tokens]
    ids = {piece: number for number, piece in enumerate(pieces)}
    added = [
        {
            "id": number,
            "content": token,
            "special": types[number] == CONTROL,
            "normalized": types[number] != CONTROL,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
        }
        for number, token in enumerate(tokens)
        if types[number] in (CONTROL, USER_DEFINED) and token in ids
    ]
    bos = {"SpecialToken": {"id": tokens[start], "type_id": 0}}
    start_token = {"id": tokens[start], "ids": [start], "tokens": [tokens[start]]}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, text],
            "pair": [bos, text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {tokens[start]: start_token},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "vocab": ids,
            "merges": [*_merges(pieces, ids)],
            "byte_fallback": True,
            "fuse_unk": True,
            "unk_token": None,
        },
    }


def _merges(pieces: Sequence[str], ids: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield each pair of tokens that is a token, those of earlier tokens first."""
    for piece in pieces:
        pairs = ((piece[:cut], piece[cut:]) for cut in range(len(piece) - 1, 0, -1))
        yield from ((first, second) for first, second in pairs if first in ids and second in ids)
