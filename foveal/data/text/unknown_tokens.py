"""What of a text has no token, since the text to train on does not have it: counted, and said."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from foveal.data.core.split_data import SplitData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.text_target import TextOutput

MAX_LISTED = 20
"""So many are named, those found most often."""
TOKENIZER_UNITS = {"character": "characters", "word": "words"}
"""What these tokenizers leave out; the others spell any text."""


def unknown_token_facts(counts: Counter[str], unit: str = "characters") -> dict[str, Any]:
    """`left_out`: how often each was found; and `left_out_characters`, or `left_out_words`: how often any."""
    return {"left_out": dict(counts.most_common(MAX_LISTED)), f"left_out_{unit}": counts.total()}


def unknown_target_facts(processor: PairProcessor, part: SplitData[Any]) -> dict[str, Any]:
    """Return these facts of a part's targets; none where no text is written, or any can be spelled."""
    if not isinstance(processor.target, TextOutput):
        return {}
    tokenizer = processor.target.tokenizer
    if tokenizer.kind not in TOKENIZER_UNITS:
        return {}
    found: Counter[str] = Counter()
    for text in part.references:
        found.update(tokenizer.encode_known(text)[1])
    return unknown_token_facts(found, TOKENIZER_UNITS[tokenizer.kind])


def log_unknown_tokens(parts: Mapping[Any, dict[str, Any]], log: Callable[[str], None]) -> None:
    """A line for each part whose facts have any."""
    for name, facts in parts.items():
        for unit in TOKENIZER_UNITS.values():
            if count := facts.get(f"left_out_{unit}"):
                most = ", ".join(f"{one!r} ({n})" for one, n in [*facts["left_out"].items()][:5])
                log(
                    f"{name}: {count:,} {unit} that the training text does not have are left out and not "
                    f"scored by the loss: {most}"
                )
