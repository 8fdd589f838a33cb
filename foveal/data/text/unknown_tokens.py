"""Counts and log lines for unknown characters and words, which do not occur in the training text."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from foveal.data.core.split_data import SplitData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.text_target import TextTargetProcessor

MAX_LISTED = 20
"""How many of the most frequent unknown characters or words are listed."""
TOKENIZER_UNITS = {"character": "characters", "word": "words"}
"""What tokenizers with unknown tokens drop. Other tokenizers encode any text."""


def unknown_token_facts(counts: Counter[str], unit: str = "characters") -> dict[str, Any]:
    """Return `left_out`, the most frequent unknown characters or words with their counts, and the total
    count.

    The key of the total is `left_out_characters` or `left_out_words`.
    """
    return {"left_out": dict(counts.most_common(MAX_LISTED)), f"left_out_{unit}": counts.total()}


def unknown_target_facts(processor: PairProcessor, split: SplitData[Any]) -> dict[str, Any]:
    """Return the facts about unknown characters or words in the targets of a split.

    Empty if targets are not texts, or if all characters are known.
    """
    if not isinstance(processor.target, TextTargetProcessor):
        return {}
    tokenizer = processor.target.tokenizer
    if tokenizer.kind not in TOKENIZER_UNITS:
        return {}
    unknown: Counter[str] = Counter()
    for text in split.references:
        unknown.update(tokenizer.encode_known(text)[1])
    return unknown_token_facts(unknown, TOKENIZER_UNITS[tokenizer.kind])


def log_unknown_tokens(splits: Mapping[Any, dict[str, Any]], log: Callable[[str], None]) -> None:
    """Log a line for each split whose facts count unknown characters or words."""
    for name, facts in splits.items():
        for unit in TOKENIZER_UNITS.values():
            if count := facts.get(f"left_out_{unit}"):
                examples = ", ".join(f"{text!r} ({n})" for text, n in [*facts["left_out"].items()][:5])
                log(
                    f"{name}: {count:,} {unit} that the training text does not have are left out and not "
                    f"scored by the loss: {examples}"
                )
