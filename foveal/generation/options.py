"""The options of `foveal generate` for sampling, beam search and attention maps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.whole_number import WholeNumber
from foveal.generation.sampling import Sampling

DEFAULT_TEMPERATURE = 0.8
TARGET_BEAM, TARGET_LENGTH_PENALTY = 5, 1.0
"""Beam size and length penalty of the beam search for the targets of sources, also in evaluation."""


@Parameter(name="*")
@dataclass(frozen=True)
class SamplingOptions:
    """Options to sample token by token."""

    temperature: float | None = None
    """Below 1, likelier tokens are preferred; 0 always takes the likeliest (greedy). Default 0.8."""
    top_k: WholeNumber = 0
    """Sample from this many likeliest tokens; 0 means all."""
    top_p: float = 1.0
    """Sample from the smallest set of likeliest tokens with this probability."""
    repetition_penalty: float = 1.0
    """Above 1, tokens that occurred before become less likely."""
    stop: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """Stop before this text; may be given several times."""
    seed: WholeNumber = 0
    """Different seeds give different samples; the same seed gives the same samples."""
    samples: WholeNumber = 1
    """Number of texts to generate for each prompt."""

    @property
    def sampling(self) -> Sampling:
        """Return the sampling settings.

        Raises: UserError: a number is out of range.
        """
        temperature = DEFAULT_TEMPERATURE if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_k, self.top_p, self.repetition_penalty, self.seed)


@Parameter(name="*")
@dataclass(frozen=True)
class BeamSearchOptions:
    """Options to search for the likeliest texts by beam search."""

    beam: WholeNumber = 0
    """Search with this many hypotheses instead of sampling."""
    best: WholeNumber = 1
    """Number of hypotheses of the beam to show, or of tokens for a gap."""
    length_penalty: float | None = None
    """Preference of the beam for longer texts (alpha of Wu et al. 2016). Default 0, or 1 for targets."""


@Parameter(name="*")
@dataclass(frozen=True)
class AttentionMapOptions:
    """Options to draw attention maps."""

    attention: Path | None = None
    """Write the attention to the source at each word as .png, .html or .json; attention to images as .png.
    For image generation, write the canvas after each step as .png."""
    head: str | None = None
    """With --attention: show one head, such as 2.1 for the first head of the second layer with attention,
    instead of the mean of all."""


DEFAULT_SAMPLING, DEFAULT_BEAM_SEARCH, NO_ATTENTION_MAP = (
    SamplingOptions(),
    BeamSearchOptions(),
    AttentionMapOptions(),
)
"""The options if none are given."""


def check_generation_options(
    tokens: int | None,
    sampling_options: SamplingOptions,
    beam_options: BeamSearchOptions,
    attention_options: AttentionMapOptions,
) -> None:
    """Check that the options are in range and do not contradict each other.

    Raises: UserError: an option is out of range or contradicts another, whatever the run.
    """
    if attention_options.head is not None and attention_options.attention is None:
        raise UserError("--head needs --attention: add --attention FILE, or leave out --head")
    greedy = sampling_options.sampling.greedy
    if beam_options.beam and sampling_options != DEFAULT_SAMPLING:
        raise UserError(
            "--beam searches for the likeliest texts and does not sample: leave out --temperature, "
            "--top-k, --top-p, --repetition-penalty, --seed, --stop and --samples (--best N shows several)"
        )
    if greedy and sampling_options.samples > 1:
        raise UserError(
            "--temperature 0 always generates the same text: leave out --samples, or raise --temperature"
        )
    smallest = min(1 if tokens is None else tokens, sampling_options.samples, beam_options.best)
    if smallest < 1 or beam_options.beam < 0:
        raise UserError("--tokens, --samples and --best must be at least 1, --beam at least 0")
