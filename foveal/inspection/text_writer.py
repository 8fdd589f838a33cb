"""The text that a run writes for an input: what `foveal generate` reads, and when it ends."""

from collections.abc import Iterable
from dataclasses import dataclass

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.memory import Memory
from foveal.core.terminal_text import WHITE_SPACE_SIGNS, escape_rare_spaces
from foveal.data.text.special_tokens import token_names
from foveal.data.text.tokenizer_base import Tokenizer
from foveal.generation.decoding_loop import CausalDecoder
from foveal.generation.options import DEFAULT_TEMPERATURE, TARGET_BEAM, TARGET_LENGTH_PENALTY
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.run_protocols import InspectedRun
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective

MAX_TOKENS = 500
"""Tokens at most: each is a row of a picture or a column of a tree."""


@dataclass(frozen=True)
class TextWriter:
    """All that decides which text a model writes for one input."""

    head: CausalDecoder
    prompt: tuple[int, ...]
    limit: int
    """Tokens at most."""
    tokenizer: Tokenizer
    memory: Memory | None = None
    end_tokens: frozenset[int] = frozenset()
    noise_key: str = ""
    """The text that, with a seed, gives the random numbers of sampling."""
    temperature: float = DEFAULT_TEMPERATURE
    beam: int = 0
    """Hypotheses of the beam search by which `foveal generate` writes; 0 if it samples."""
    length_penalty: float = 0.0
    chosen: ChosenInput | None = None
    """The input of an encoder; None for a model that continues a text."""

    def names(self, tokens: Iterable[int]) -> tuple[str, ...]:
        """Return the text of each token, with its white space."""
        return token_names(tokens, self.tokenizer)

    def labels(self, tokens: Iterable[int]) -> tuple[str, ...]:
        """Return the text of each token for a cell or an axis, where white space is a sign."""
        return tuple(map(token_label, self.names(tokens)))


def token_label(name: str) -> str:
    """Return the text of a token with signs for white space. A space at the end of a word is left away."""
    return escape_rare_spaces((name.rstrip(" ") or name).translate(WHITE_SPACE_SIGNS))


def why_no_text(run: InspectedRun) -> str:
    """Return why a run writes no text; an empty text if it does."""
    if isinstance(run.model, CausalDecoder) or isinstance(run.objective, SequenceToSequenceObjective):
        return why_no_input(run)
    return f"this run writes no text (task {run.task.name})"


def text_writer(run: InspectedRun, options: InputOptions, tokens: int, log: Log) -> tuple[TextWriter, str]:
    """Return the writer for the input that the options name, of `tokens` tokens at most, and its name.

    Raises: UserError: there is no such input, or it is too long.
    """
    if not 1 <= tokens <= MAX_TOKENS:
        raise UserError(f"--tokens {tokens}: write between 1 and {MAX_TOKENS}")
    chosen = choose_input(run, options, log)
    if isinstance(run.objective, SequenceToSequenceObjective):
        return _target_writer(run, chosen, options.text, tokens), chosen.name
    return _continuation_writer(run, chosen, options.text, tokens), chosen.name


def _continuation_writer(run: InspectedRun, chosen: ChosenInput, text: str | None, tokens: int) -> TextWriter:
    """Return the writer of a continuation of a typed text, or of a window of the data."""
    read = chosen.batch.inputs[0]
    prompt = tuple((read if read.dim() == 1 else read[:, 0]).tolist())
    limit = tokens if run.model.limit is None else min(tokens, run.model.limit - len(prompt) + 1)
    if limit < 1:
        raise UserError(f"the text has {len(prompt)} tokens, and the model reads {run.model.limit}: cut it")
    key = run.processor.decode(prompt) if text is None else text
    return TextWriter(run.model, prompt, limit, run.processor, noise_key=key)


def _target_writer(run: InspectedRun, chosen: ChosenInput, text: str | None, tokens: int) -> TextWriter:
    """Return the writer of a target of a source."""
    objective, target = run.objective, run.processor.target
    return TextWriter(
        run.model.head,
        (objective.special_tokens.bos,),
        min(tokens, *objective.limits(chosen.batch)),
        target.tokenizer,
        objective.memory(chosen.batch),
        frozenset({objective.special_tokens.eos}),
        chosen.name if text is None else text,
        beam=TARGET_BEAM,
        length_penalty=TARGET_LENGTH_PENALTY,
        chosen=chosen,
    )
