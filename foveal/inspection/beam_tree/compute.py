"""The tree of a beam search: which hypotheses were kept, pruned or finished at each step.

Each step keeps the continuations with the highest sum of log-probabilities. A finished hypothesis is scored
by this sum over the length penalty ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14).
"""

from typing import Literal, NamedTuple

from foveal.generation.beam_search import BeamPath, BeamStep, top_log_probabilities
from foveal.inspection.candidates.compute import best_path, path_score, run_beam_search
from foveal.inspection.text_writer import TextWriter

Fate = Literal["kept", "pruned", "finished"]


class Hypothesis(NamedTuple):
    """A hypothesis after a step of the search."""

    parent: int | None
    """The number of the hypothesis that it continues; None at the first step."""
    step: int
    """The number of its tokens."""
    slot: int
    """Its place in the beam. The pruned ones of a step follow, the likeliest first."""
    token: int
    log_probability: float
    fate: Fate
    score: float
    is_best: bool
    """Whether the best hypothesis begins with it, or is it."""


class BeamTree(NamedTuple):
    """The hypotheses in the order in which they arose."""

    hypotheses: list[Hypothesis]
    beam: int

    def tokens(self, number: int) -> tuple[int, ...]:
        """Return the tokens of a hypothesis, the first one first."""
        backwards, now = [], self.hypotheses[number]
        backwards.append(now.token)
        while now.parent is not None:
            now = self.hypotheses[now.parent]
            backwards.append(now.token)
        return tuple(reversed(backwards))


class _Growth:
    """Collects the hypotheses while the search runs."""

    def __init__(self, beam: int, alpha: float, pruned: int):
        self._beam, self._alpha, self._pruned = beam, alpha, pruned
        self._numbers = dict[int, int]()
        self.paths = list[BeamPath]()
        self.hypotheses = list[Hypothesis]()

    def watch(self, step: BeamStep) -> None:
        """Add the hypotheses after a step, then those that were pruned."""
        known = {id(path) for path in step.before}
        kept = set[tuple[int, int]]()
        for slot, path in enumerate(step.after):
            if id(path) not in known and path.parent is not None and path.log_probability > -float("inf"):
                kept.add((id(path.parent), path.token))
                self._numbers[id(path)] = len(self.paths)
                self._add(path, slot, "finished" if path.ended else "kept")
        for place, path in enumerate(self._likeliest_pruned(step, kept)):
            self._add(path, self._beam + place, "pruned")

    def _likeliest_pruned(self, step: BeamStep, kept: set[tuple[int, int]]) -> list[BeamPath]:
        log_probs, tokens = top_log_probabilities(step.logits, self._beam + self._pruned)
        rows = zip(step.before, log_probs.tolist(), tokens.tolist(), strict=True)
        pruned = [
            BeamPath(path, token, path.length + 1, path.log_probability + log_prob)
            for path, row, ids in rows
            if not path.ended and path.log_probability > -float("inf")
            for log_prob, token in zip(row, ids, strict=True)
            if (id(path), token) not in kept
        ]
        return sorted(pruned, key=lambda path: -path.log_probability)[: self._pruned]

    def _add(self, path: BeamPath, slot: int, fate: Fate) -> None:
        self.paths.append(path)  # which keeps its id from being used again
        parent = self._numbers.get(id(path.parent))
        score = path_score(path, self._alpha)
        one = Hypothesis(parent, path.length, slot, path.token, path.log_probability, fate, score, False)
        self.hypotheses.append(one)


def beam_tree(writer: TextWriter, beam: int, alpha: float, pruned: int) -> BeamTree:
    """Search, and return the tree with the `pruned` likeliest of the pruned hypotheses of each step."""
    growth = _Growth(beam, alpha, pruned)
    best = best_path(run_beam_search(writer, beam, alpha, growth.watch), alpha)
    marked = {id(path) for path in best}
    hypotheses = [
        one._replace(is_best=id(path) in marked)
        for path, one in zip(growth.paths, growth.hypotheses, strict=True)
    ]
    return BeamTree(hypotheses, beam)
