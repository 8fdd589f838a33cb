"""Generation with a run, from Python."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from foveal.api.arguments import one_or_several
from foveal.api.errors import plain_errors
from foveal.api.few_shot import Examples, few_shot_prompt
from foveal.api.generation import check_input, collect_events, stream_text
from foveal.api.results.scores import GeneratedTexts
from foveal.core.progress import no_progress
from foveal.generation.options import (
    AttentionMapOptions,
    BeamSearchOptions,
    SamplingOptions,
    check_generation_options,
)
from foveal.generation.request import GenerateRequest
from foveal.tasks.base import Task
from foveal.ui.console import log as console_log
from foveal.ui.progress_bar import ProgressBar


class GeneratingRun(ABC):
    """The part of a run that generates."""

    path: Path

    @property
    @abstractmethod
    def task(self) -> Task:
        """The task, bound to processor and model."""

    @abstractmethod
    def _path_of(self, data: Any) -> str:
        """Return the path of data for this run."""

    @overload
    def generate(
        self,
        prompt: str | Sequence[str] | None = ...,
        *,
        tokens: int | None = ...,
        temperature: float | None = ...,
        top_k: int = ...,
        top_p: float = ...,
        repetition_penalty: float = ...,
        stop: str | Sequence[str] = ...,
        seed: int = ...,
        samples: int = ...,
        beam: int = ...,
        best: int = ...,
        length_penalty: float | None = ...,
        input: Any = ...,
        out: str | Path | None = ...,
        attention: str | Path | None = ...,
        shots: Examples | None = ...,
        template: str | None = ...,
        stream: Literal[True],
    ) -> Iterator[str]: ...
    @overload
    def generate(
        self,
        prompt: str | Sequence[str] | None = ...,
        *,
        tokens: int | None = ...,
        temperature: float | None = ...,
        top_k: int = ...,
        top_p: float = ...,
        repetition_penalty: float = ...,
        stop: str | Sequence[str] = ...,
        seed: int = ...,
        samples: int = ...,
        beam: int = ...,
        best: int = ...,
        length_penalty: float | None = ...,
        input: Any = ...,
        out: str | Path | None = ...,
        attention: str | Path | None = ...,
        shots: Examples | None = ...,
        template: str | None = ...,
        stream: Literal[False] = ...,
    ) -> GeneratedTexts: ...
    @plain_errors
    def generate(
        self,
        prompt: str | Sequence[str] | None = None,
        *,
        tokens: int | None = None,
        temperature: float | None = None,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        stop: str | Sequence[str] = (),
        seed: int = 0,
        samples: int = 1,
        beam: int = 0,
        best: int = 1,
        length_penalty: float | None = None,
        input: Any = None,
        out: str | Path | None = None,
        attention: str | Path | None = None,
        shots: Examples | None = None,
        template: str | None = None,
        stream: bool = False,
    ) -> GeneratedTexts | Iterator[str]:
        """Return texts that continue a prompt or several; or targets for sources, masked words, or images.

        With `stream`, return an iterator over the pieces of a single text, as they are generated. `input` is
        a file as for `foveal generate --input`, or images or series in memory, `out` is where images are
        written, and `attention` where what the model read for each word is drawn, as a `.png` or `.html`.
        `shots` are examples that a language model reads before each prompt: a table, or pairs of texts. The
        other options are those of `foveal generate`, with the same defaults.

        Raises: UserError: an option does not fit the run, or is out of range.
        """
        sampling = SamplingOptions(
            temperature, top_k, top_p, repetition_penalty, one_or_several(stop), seed, samples
        )
        search = BeamSearchOptions(beam, best, length_penalty)
        sources = None if input is None else self._path_of(check_input(self.task, input))
        files = [None if name is None else Path(name) for name in (sources, out, attention)]
        maps = AttentionMapOptions(files[2])
        check_generation_options(tokens, sampling, search, maps)
        several = prompt if prompt is None or isinstance(prompt, str) else tuple(prompt)
        examples = few_shot_prompt(self.task, str(self.path), shots, template)
        request = GenerateRequest(
            str(self.path), several, files[0], tokens, sampling, search, maps, files[1], stream, examples
        )
        self.task.check_generate(request)
        if stream:
            return stream_text(self.task.generate(request, console_log, no_progress))
        with ProgressBar("generated") as progress:
            result = collect_events(self.task.generate(request, console_log, progress), request)
        return GeneratedTexts(result.get("samples", []), result)
