"""The laws of generation: beam search and greedy decoding on the model that generates."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

import torch

from foveal.generation.beam_search import beam_search
from foveal.generation.decoding_loop import generate
from foveal.generation.sampling import GREEDY
from foveal.laws.decoder_laws import ROWS, DecoderTrial, ragged
from foveal.laws.law import LawBroken, require
from foveal.studies.check.law import PATHS, ComputePath, Law

TOKENS, BEAM = 6, 4
"""Tokens that are generated, and hypotheses of a beam."""


def laws_of_generation(trials: Mapping[ComputePath, DecoderTrial]) -> Iterator[Law]:
    """Yield the laws of generation."""
    yield Law("beam 1 is greedy", partial(_beam_of_one, trials), TOKENS, PATHS)
    yield Law("a beam follows its hypotheses", partial(_beam_scores, trials), TOKENS, PATHS)


def _prompts(trial: DecoderTrial) -> list[list[int]]:
    tokens = trial.tokens(4).tolist()
    return [row[: max(1, int(size))] for row, size in zip(tokens, ragged(4), strict=True)]


def _beam_of_one(trials: Mapping[ComputePath, DecoderTrial], path: ComputePath, length: int) -> None:
    """Check that a beam of a single hypothesis is greedy decoding.

    Raises: LawBroken: another token is chosen.
    """
    trial = trials[path]
    prompts = _prompts(trial)
    written: list[list[int]] = [[] for _ in prompts]
    memory: Any = trial.make_memory()
    for token in generate(trial.head, prompts, [""] * ROWS, length, GREEDY, memory=memory):
        written[token.row].append(token.token)
    searched = beam_search(trial.head, prompts, length, beam=1, memory=memory)
    for row, (hypotheses, tokens) in enumerate(zip(searched, written, strict=True)):
        require(bool(hypotheses), f"beam search finds no hypothesis for prompt {row}")
        pairs = zip_longest(hypotheses[0].tokens, tokens)  # one of them may end before the other
        first = next((place for place, (token, other) in enumerate(pairs) if token != other), None)
        if first is not None:
            raise LawBroken(
                "a beam of 1 chooses another token than greedy decoding", None, f"row {row}, token {first}"
            )


@torch.no_grad()
def _beam_scores(trials: Mapping[ComputePath, DecoderTrial], path: ComputePath, length: int) -> None:
    """Check that the log-probability of each hypothesis is that of its tokens, read at once.

    Raises: LawBroken: a hypothesis was extended from the state of another.
    """
    trial = trials[path]
    prompts, memory = _prompts(trial), trial.make_memory()
    hypotheses = beam_search(trial.head, prompts, length, beam=BEAM, best=BEAM, memory=memory)
    for row, (prompt, kept) in enumerate(zip(prompts, hypotheses, strict=True)):
        require(bool(kept), f"beam search finds no hypothesis for prompt {row}")
        for place, each in enumerate(kept):
            tokens = torch.tensor([*prompt, *each.tokens])
            logits, _ = trial.read(tokens[None, :-1], trial.begin(rows=torch.tensor([row])))
            steps = logits[0, len(prompt) - 1 :].double().log_softmax(-1)
            total = float(steps.gather(1, tokens[len(prompt) :, None]).sum())
            if abs(total - each.log_probability) > 10 * trial.tolerance * max(1.0, abs(total)):
                problem = "the log-probability of a hypothesis is not that of its tokens"
                raise LawBroken(problem, abs(total - each.log_probability), f"row {row}, hypothesis {place}")
