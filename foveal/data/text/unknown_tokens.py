"""Counts, checks and log lines for unknown characters and words, which the training text does not have."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from foveal.core.errors import UserError
from foveal.data.core.split_data import SplitData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.text_target import TextTargetProcessor
from foveal.data.text.tokenizer_base import Tokenizer
from foveal.data.text.word_vocabulary import WordVocabulary

MAX_LISTED = 20
"""How many of the most frequent unknown characters or words are listed."""
UNITS = ("characters", "words")
"""What may be unknown."""
MAX_UNKNOWN_SHARE = 0.5
"""The largest share of unknown characters or words of which a score still says something."""


def check_known_facts(name: str, facts: Mapping[str, Any]) -> None:
    """Check that most characters or words of the texts of a split are known, by the facts about the split.

    Raises: UserError: most are unknown.
    """
    for unit in UNITS:
        known = facts.get("tokens", facts.get("target_tokens", 0))
        _check_share(name, facts.get("left_out", {}), facts.get(f"left_out_{unit}", 0), known, unit)


def check_known_sources(name: str, processor: Any, texts: Iterable[str]) -> None:
    """Check that most characters or words of source texts are known to the processor of the sources.

    Raises: UserError: most are unknown.
    """
    if isinstance(processor, Tokenizer | WordVocabulary):
        unit, known, unknown = processor.count_units(texts)
        _check_share(name, dict(unknown.most_common(MAX_LISTED)), unknown.total(), known, unit)


def _check_share(name: str, examples: Mapping[str, int], unknown: int, known: int, unit: str) -> None:
    total = unknown + known
    if unknown > MAX_UNKNOWN_SHARE * total:
        raise UserError(
            f"{name}: {100 * unknown / total:.0f} % of its {unit} do not occur in the training text: "
            f"{_in_words(examples)}; give text of the same language and kind, or train on such text, too"
        )


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
    if not tokenizer.unit:
        return {}
    return unknown_token_facts(tokenizer.count_units(split.references).unknown, tokenizer.unit)


def log_unknown_tokens(splits: Mapping[Any, dict[str, Any]], log: Callable[[str], None]) -> None:
    """Log a line for each split whose facts count unknown characters or words."""
    for name, facts in splits.items():
        for unit in UNITS:
            if count := facts.get(f"left_out_{unit}"):
                log(
                    f"{name}: {count:,} {unit} that the training text does not have are left out and not "
                    f"scored by the loss: {_in_words(facts['left_out'])}"
                )


def log_unknown_source(name: str, processor: Any, text: str, log: Callable[[str], None]) -> None:
    """Log a line if a source text has characters or words that the processor of the sources does not know."""
    if isinstance(processor, Tokenizer | WordVocabulary):
        unit, _, unknown = processor.count_units([text])
        if unknown:
            left_out = "; they are left out" if isinstance(processor, Tokenizer) else ""
            log(
                f"{name}: {unknown.total():,} {unit} that the training text does not have: "
                f"{_in_words(dict(unknown.most_common(MAX_LISTED)))}{left_out}"
            )


def _in_words(examples: Mapping[str, int]) -> str:
    """Return the most frequent unknown characters or words, with their counts."""
    return ", ".join(f"{text!r} ({count})" for text, count in [*examples.items()][:5])
