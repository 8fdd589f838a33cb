"""Tokens per second of `foveal generate` with sampling, for several lengths of text.

The cost of a token does not grow with the text for a recurrent mixer. It grows for attention, which is
measured for comparison.
"""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.subject import VOCABULARY
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.generation.sampling import Sampling
from foveal.generation.text_stream import collect_texts, generate_text
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model


def generator(preset: str, tokens: int) -> Callable[[], None]:
    """Return a function that generates a text of `tokens` tokens with a new model of the preset."""
    model: Any = build_model(task_of(load_config(preset)).bind(VOCABULARY), torch.device("cpu")).eval()

    def run() -> None:
        texts = collect_texts(generate_text(model, VOCABULARY, [" "], tokens, Sampling(temperature=0.8)))
        assert len(texts[0].tokens) == tokens

    return run


def measure(preset: str, goal: float | None, quick: bool) -> Measurement:
    """Measure the cost of a token in the longest text over that in the shortest."""
    lengths = (5, 10, 20) if quick else (100, 1000, 4000)
    samples = interleave({str(n): generator(preset, n) for n in lengths}, seconds=0.5, quick=quick)
    short, long = lengths[0], lengths[-1]
    growth = [short / long * value for value in samples.speedup(str(short), str(long))]
    speeds = ", ".join(f"{n / samples.median(str(n)):,.0f} tokens/s over {n}" for n in lengths)
    title = f"Generation with `{preset}`: cost of a token over {long} tokens by that over {short}"
    return ratio(title, growth, goal, speeds, samples.trust, at_most=True)


if __name__ == "__main__":
    options = parse_options(__doc__)
    report([measure("lstm", 1.1, options.quick), measure("attention", None, options.quick)], options)
