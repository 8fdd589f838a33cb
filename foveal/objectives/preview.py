"""Held-out examples for the previews during training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foveal.data.core.batching import ExampleBatch


@dataclass(frozen=True)
class PreviewExamples:
    """A `batch` of examples, the texts of their `sources` in the order of its rows, and a tokenizer's
    `decode`."""

    batch: ExampleBatch
    sources: list[str]
    decode: Callable[[Sequence[int]], str]

    def text(self, generated: list[list[int]]) -> str:
        """Return a line `source -> text of the generated tokens` for each example."""
        lines = (
            f"{source} -> {self.decode(tokens)}"
            for source, tokens in zip(self.sources, generated, strict=True)
        )
        return "\n".join(" ".join(line.split()) for line in lines)
