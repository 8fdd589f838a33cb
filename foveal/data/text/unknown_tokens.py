"""What of a text has no token, since the text to train on does not have it: counted, and said."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from foveal.data.core.split_data import Part
from foveal.data.text.tokenizer_base import Tokenizer

MOST = 20
"""So many are named, those found most often."""
UNITS = {"character": "characters", "word": "words"}
"""What these tokenizers leave out; the others spell any text."""


@runtime_checkable
class Writing(Protocol):
    """The inputs of a model that writes targets."""

    @property
    def target(self) -> Tokenizer: ...


def facts_of(found: Counter[str], unit: str = "characters") -> dict[str, Any]:
    """`left_out`: how often each was found; and `left_out_characters`, or `left_out_words`: how often any."""
    return {"left_out": dict(found.most_common(MOST)), f"left_out_{unit}": found.total()}


def of_targets(inputs: Any, part: Part[Any]) -> dict[str, Any]:
    """These facts of a part's targets; none where no text is written, or any can be spelled."""
    if not isinstance(inputs, Writing) or inputs.target.kind not in UNITS:
        return {}
    found: Counter[str] = Counter()
    for text in part.answers:
        found.update(inputs.target.encode_known(text)[1])
    return facts_of(found, UNITS[inputs.target.kind])


def say_left_out(parts: Mapping[Any, dict[str, Any]], say: Callable[[str], None]) -> None:
    """A line for each part whose facts have any."""
    for name, facts in parts.items():
        for unit in UNITS.values():
            if count := facts.get(f"left_out_{unit}"):
                most = ", ".join(f"{one!r} ({n})" for one, n in [*facts["left_out"].items()][:5])
                say(
                    f"{name}: {count:,} {unit} that the training text does not have are left out and not "
                    f"scored by the loss: {most}"
                )
