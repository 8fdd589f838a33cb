"""The options of `foveal generate`: how text is drawn, and how it is searched for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.generation.sampling import Sampling

DEFAULT_TEMPERATURE = 0.8


@Parameter(name="*")
@dataclass(frozen=True)
class SamplingOptions:
    """Token by token, by chance."""

    temperature: float | None = None
    """Below 1 likelier tokens are preferred; 0 always takes the likeliest (greedy); 0.8 if not given."""
    top_k: int = 0
    """Draw from this many likeliest tokens; 0 means all."""
    top_p: float = 1.0
    """Draw from the smallest set of likeliest tokens with this probability."""
    repetition_penalty: float = 1.0
    """Above 1 tokens that were there before become less likely."""
    stop: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """End before this text; may be given several times."""
    seed: int = 0
    """Another seed gives other samples; the same gives the same."""
    samples: int = 1
    """How many texts to write for each prompt."""

    @property
    def sampling(self) -> Sampling:
        """Errors: UserError for a number out of range."""
        temperature = DEFAULT_TEMPERATURE if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_k, self.top_p, self.repetition_penalty, self.seed)


@Parameter(name="*")
@dataclass(frozen=True)
class BeamSearchOptions:
    """The likeliest texts, by beam search."""

    beam: int = 0
    """Search with this many hypotheses instead of sampling."""
    best: int = 1
    """How many of the beam's hypotheses to show, or of a gap's tokens."""
    length_penalty: float | None = None
    """The beam's preference for longer texts (alpha of Wu et al. 2016); 0 if not given, 1 for targets."""


@Parameter(name="*")
@dataclass(frozen=True)
class AttentionMapOptions:
    """A picture of what was read."""

    attention: Path | None = None
    """Write what was read of the source at each word: a .png, .html or .json; of pictures a .png; of drawings
    the canvas after each step, a .png."""
    head: str | None = None
    """Of --attention: one head, as 2.1 for the first of the second layer that reads, not the mean of all."""


DEFAULT_SAMPLING, DEFAULT_BEAM_SEARCH, NO_ATTENTION_MAP = (
    SamplingOptions(),
    BeamSearchOptions(),
    AttentionMapOptions(),
)
"""What is done if nothing is said."""


def check_generation_options(
    tokens: int | None,
    sampling_options: SamplingOptions,
    beam_options: BeamSearchOptions,
    attention_options: AttentionMapOptions,
) -> None:
    """Raise UserError for options that are out of range, or contradict each other with any run."""
    if attention_options.head is not None and attention_options.attention is None:
        raise UserError("--head belongs to --attention: give a file for it, or leave it out")
    greedy = sampling_options.sampling.greedy
    if beam_options.beam and sampling_options != DEFAULT_SAMPLING:
        raise UserError(
            "--beam searches for the likeliest texts and draws nothing: with it leave out --temperature, "
            "--top-k, --top-p, --repetition-penalty, --seed, --stop and --samples (--best N shows several)"
        )
    if greedy and sampling_options.samples > 1:
        raise UserError("--temperature 0 always writes the same text: leave out --samples, or raise it")
    least = min(1 if tokens is None else tokens, sampling_options.samples, beam_options.best)
    if least < 1 or beam_options.beam < 0:
        raise UserError("--tokens, --samples and --best must be at least 1, --beam at least 0")
