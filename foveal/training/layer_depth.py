"""How many layers below the head a parameter is, by its name."""

import re
from collections.abc import Collection

BLOCK = re.compile(r"(.*?)blocks\.(\d+)\.")
"""A block of a stack, or of a network."""
STEM_PREFIXES = ("embedding", "stack.positioned")
"""What is before the first block of a model without an encoder; of an encoder it is all but the last norm."""


def layer_depths(names: Collection[str]) -> dict[str, int]:
    """Of each parameter: 1 in the last block (the encoder's, if there is one), one more in each before it and
    in what is before them all; 0 in the head and a norm behind the blocks.

    A stack may see what others made, `encoder.stack.blocks.0` what `encoder.parts.question.stack.blocks.1`
    did: those are below it.
    """
    named = [name for name in names if not name.startswith("head.")]
    blocks = {name: (found[1], int(found[2])) for name in named if (found := BLOCK.match(name))}
    counts: dict[str, int] = {}
    for stack, place in blocks.values():
        counts[stack] = max(counts.get(stack, 0), place + 1)
    above = {stack: sum(counts[other] for other in counts if _is_fed_by(other, stack)) for stack in counts}
    within = {name: above[stack] + counts[stack] - place for name, (stack, place) in blocks.items()}
    around = {}
    for name in named:
        stack = max((one for one in counts if name.startswith(_owner(one))), key=len, default=None)
        if stack is not None and name not in within:
            around[name] = above[stack] + (counts[stack] + 1 if _is_in_stem(name, _owner(stack)) else 0)
    return dict.fromkeys(names, 0) | around | within


def _owner(stack: str) -> str:
    """The module that a stack is in; the blocks of a network are its own."""
    return stack.removesuffix("stack.")


def _is_fed_by(stack: str, other: str) -> bool:
    """Whether a stack is fed by what is in another."""
    return stack != other and stack.endswith("stack.") and other.startswith(_owner(stack))


def _is_in_stem(name: str, reader: str) -> bool:
    rest = name.removeprefix(reader)
    return not rest.startswith("norm.") if reader else rest.startswith(STEM_PREFIXES)
