"""A few held-out examples that previews are made of while training goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foveal.data.core.batching import ExampleBatch


@dataclass(frozen=True)
class PreviewExamples:
    """`batch` holds the examples of `sources`, in the order of its `rows`; `decode` makes text of tokens."""

    batch: ExampleBatch
    sources: list[str]
    decode: Callable[[Sequence[int]], str]

    def text(self, written: list[list[int]]) -> str:
        """`source -> what the model writes`, a line each."""
        lines = (
            f"{source} -> {self.decode(tokens)}" for source, tokens in zip(self.sources, written, strict=True)
        )
        return "\n".join(" ".join(line.split()) for line in lines)
