"""What the user asks of `foveal generate`, for any task."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data.files.aligned import read_lines
from foveal.generation.few_shot import FewShotPrompt
from foveal.generation.options import (
    DEFAULT_BEAM_SEARCH,
    DEFAULT_SAMPLING,
    NO_ATTENTION_MAP,
    AttentionMapOptions,
    BeamSearchOptions,
    SamplingOptions,
)


@dataclass(frozen=True)
class GenerateRequest:
    """The options of `foveal generate`; `run` is the run's name for messages."""

    run: str
    prompt: str | tuple[str, ...] | None = None
    input: Path | None = None
    tokens: int | None = None
    sampling: SamplingOptions = DEFAULT_SAMPLING
    beam: BeamSearchOptions = DEFAULT_BEAM_SEARCH
    attention: AttentionMapOptions = NO_ATTENTION_MAP
    out: Path | None = None
    stream: bool = False
    """Whether text is shown while it is generated."""
    shots: FewShotPrompt | None = None
    """The examples before each prompt."""

    def changed_options(self) -> set[str]:
        """Return the names of the options that have another value than the default."""
        options: dict[str, tuple[Any, Any]] = {
            "prompt": (self.prompt, None),
            "input": (self.input, None),
            "tokens": (self.tokens, None),
            "out": (self.out, None),
            "shots": (self.shots, None),
        }
        for group, default in (
            (self.sampling, DEFAULT_SAMPLING),
            (self.beam, DEFAULT_BEAM_SEARCH),
            (self.attention, NO_ATTENTION_MAP),
        ):
            options |= {name: (value, getattr(default, name)) for name, value in vars(group).items()}
        return {name for name, (value, default) in options.items() if value != default}

    def unknown_options(self, known: Collection[str]) -> set[str]:
        """Return the names of the changed options that are not `known`."""
        return self.changed_options() - set(known)

    def prompts(self) -> list[str]:
        """Return the prompt, or the prompts of the input file (one per line); an empty prompt if there is
        neither.

        Raises: UserError: both are given, or the file has no prompts or can't be read.
        """
        if self.input is None:
            return [*self.prompt] if isinstance(self.prompt, tuple) else [self.prompt or ""]
        if self.prompt is not None:
            raise UserError("--prompt and --input can't both be given")
        prompts = []
        for line in read_lines(self.input):
            if line.reason:
                raise UserError(f"{self.input}, line {line.number}: {line.reason}")
            prompts.append(line.text.rstrip("\r\n"))
        if not prompts:
            raise UserError(f"{self.input}: no prompts: write one prompt per line")
        return prompts


SAMPLING_OPTIONS = tuple(name for name in vars(DEFAULT_SAMPLING) if name != "stop")
BEAM_OPTIONS = tuple(vars(DEFAULT_BEAM_SEARCH))
