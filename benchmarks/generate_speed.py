"""Tokens per second of sampling, as `foveal generate` does it, at several lengths of text.

A recurrent mixer's cost of a token does not grow with the text; attention's does, and is there to compare.
"""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.subject import VOCABULARY
from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.generation.sampling import Sampling
from foveal.generation.text_stream import collect_texts, generate_text
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model


def writer(preset: str, tokens: int) -> Callable[[], None]:
    """Return a function that generates a text of `tokens` tokens with a new model of the preset."""
    model: Any = build_model(task_of(load_config(preset)).bound(VOCABULARY), torch.device("cpu")).eval()

    def run() -> None:
        written = collect_texts(generate_text(model, VOCABULARY, [" "], tokens, Sampling(temperature=0.8)))
        assert len(written[0].tokens) == tokens

    return run


def measure(preset: str, goal: float | None, quick: bool) -> Figure:
    """The cost of a token in the longest text over that in the shortest."""
    lengths = (5, 10, 20) if quick else (100, 1000, 4000)
    samples = interleave({str(n): writer(preset, n) for n in lengths}, seconds=0.5, quick=quick)
    short, long = lengths[0], lengths[-1]
    growth = [short / long * value for value in samples.speedup(str(short), str(long))]
    speeds = ", ".join(f"{n / samples.median(str(n)):,.0f} tokens/s over {n}" for n in lengths)
    what = f"Generation with `{preset}`: cost of a token over {long} tokens by that over {short}"
    return ratio(what, growth, goal, speeds, samples.trust, at_most=True)


if __name__ == "__main__":
    given = options(__doc__)
    report([measure("lstm", 1.1, given.quick), measure("attention", None, given.quick)], given)
