"""Walks by an instruction: learnt from shortest paths, and then from where one's own walks end."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.core.result import Result, Term
from foveal.core.runtime import at_least_single
from foveal.core.state import State, select
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.length_limit import Room
from foveal.objectives.preview import Shown
from foveal.objectives.stateless import Apart
from foveal.ops.attention.hard_attention import choose_place
from foveal.ops.padding import present
from foveal.tasks.navigation.grid_world import MOVES, STOP, follow, step, view
from foveal.tasks.navigation.model import Walker
from foveal.tasks.navigation.path_length import weighted_success

WALKS = 4
"""Walks of each row that REINFORCE compares."""


class Walk(NamedTuple):
    """B walks of at most T moves."""

    moves: Int[Tensor, "B T"]
    """Behind the end of a walk they mean nothing."""
    taken: Int[Tensor, " B"]
    """Moves of each, its stop aside."""
    place: Int[Tensor, "B 2"]
    """Where each ended."""
    stopped: Bool[Tensor, " B"]
    """Whether it ended itself."""
    log_chance: Float[Tensor, " B"]
    """`sum_t log p(a_t)` of its moves."""

    def rows(self) -> list[list[int]]:
        """The moves of each, with its stop."""
        lengths = (self.taken + self.stopped).tolist()
        return [moves[:length] for moves, length in zip(self.moves.tolist(), lengths, strict=True)]


class NavigateTask(Apart):
    """`-sum_t log p(a_t | a_1 .. a_(t-1), views, instruction)` in nats over the moves of the shortest path.

    Columns of a batch: `source`, `map`, `start`; to train on and to be scored also `target`, `goal` and
    `shortest`. Evaluated, the likeliest moves are also walked, at most `room` of them: `success` and `spl`.
    """

    def __init__(self, model: Walker, room: Room, shown: Shown | None = None):
        self.model, self.room, self.shown = model, room, shown

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return {"loss": float(batch.tokens)}

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        moves, lengths = batch.columns["target"], batch.lengths["target"]
        memory, cells = self.read(batch), batch.columns["map"]
        poses = follow(cells, batch.columns["start"], moves[:, :-1])
        before = F.pad(moves[:, :-1], (1, 0), value=self.model.none)
        logits, _ = self.model(view(cells, poses), before, self.model.start(memory), lengths)
        scored = present(lengths, moves.shape[1])
        nats = F.cross_entropy(at_least_single(logits)[scored], moves[scored], reduction="sum")
        metrics = {"loss": (float(nats.detach()), float(batch.tokens))}
        if not self.model.training:
            metrics |= scores(batch, self.walk(batch, memory, draw=False))
        return Result({"loss": Term(nats, float(batch.tokens))}, metrics), None

    def read(self, batch: ExampleBatch) -> Memory:
        """What the encoder makes of the instructions."""
        memory, _ = self.model.encoder(batch.columns["source"], batch.lengths["source"])
        return memory

    def walk(self, batch: ExampleBatch, memory: Memory, draw: bool) -> Walk:
        """Go by one's own moves, drawn or the likeliest, until all stopped or may go no further."""
        cells, pose = batch.columns["map"], batch.columns["start"]
        state, before = self.model.start(memory), pose.new_full((len(pose),), self.model.none)
        going, taken = torch.ones_like(before, dtype=torch.bool), torch.zeros_like(before)
        log_chance, moves = at_least_single(memory.summary).new_zeros(len(pose)), []
        allowed = torch.ones(len(pose), len(MOVES), dtype=torch.bool, device=pose.device)
        rows = torch.arange(len(pose), device=pose.device)
        for _ in range(self.room.of(0)):
            if 2 * int(going.sum()) <= len(rows):  # those that stopped are left behind, now and then
                kept = going[rows].nonzero()[:, 0]
                rows, state = rows[kept], select(state, kept)
            logits, state = self.model(view(cells[rows], pose[rows, None]), before[rows, None], state)
            move, chance, _ = choose_place(logits[:, 0], allowed[rows], draw)
            before = torch.full_like(before, STOP).index_copy(0, rows, move)
            moves.append(before)
            log_chance = log_chance.index_add(0, rows, torch.where(going[rows], chance, 0.0))
            going = going & (before != STOP)
            pose = torch.where(going[:, None], step(cells, pose, before), pose)
            taken = taken + going
            if not going.any():
                break
        return Walk(torch.stack(moves, 1), taken, pose[:, :2], ~going, log_chance)

    def predict(self, batch: ExampleBatch) -> Walk:
        """The likeliest moves; the model is to be in evaluation mode."""
        batch = batch.to(next(self.model.parameters()).device)
        with torch.inference_mode():
            return self.walk(batch, self.read(batch), draw=False)

    def preview(self, step: int) -> str | None:
        """A few held-out instructions, and where they lead now."""
        if self.shown is None:
            return None
        return self.shown.text(self.predict(self.shown.batch).rows())


class ReinforcedNavigateTask(NavigateTask):
    """REINFORCE (Williams 1992) on one's own walks: the gradient of the expected reward R, a walk's SPL.

    Every row is walked K = WALKS times; with `b_k = 1 / (K - 1) sum_(j != k) R_j`, which does not depend on
    walk k (Kool et al. 2019), it follows `1/K sum_k (R_k - b_k) grad log p(walk k)`. The metric `loss` is the
    share of the reward that is missed, in evaluation by the likeliest moves.
    """

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return {"walks": float(len(batch.rows))}

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        rows, memory = len(batch.rows), self.read(batch)
        times = WALKS if self.model.training else 1
        which = torch.arange(rows, device=memory.mask.device).repeat(times)
        columns = {name: column[which] for name, column in batch.columns.items()}
        lengths = {name: length[which] for name, length in batch.lengths.items()}
        again = ExampleBatch(batch.rows.repeat(times), columns, lengths, times * batch.tokens)
        walk = self.walk(again, memory.rows(which), draw=self.model.training)
        reward = reward_of(again, walk).view(times, rows)
        advantage = (reward - reward.mean(0)) * times / max(1, times - 1)
        term = Term(-(advantage.flatten() * walk.log_chance).sum() / times, float(rows))
        found = scores(again, walk)
        gained, walked = found["spl"]
        told = {"loss": (walked - gained, walked), "reward": (gained, walked)}
        return Result({"walks": term}, told | found), None


def arrived(batch: ExampleBatch, walk: Walk) -> Bool[Tensor, " B"]:
    """Who stopped at the goal."""
    return walk.stopped & (walk.place == batch.columns["goal"]).all(1)


def reward_of(batch: ExampleBatch, walk: Walk) -> Float[Tensor, " B"]:
    """Success weighted by path length."""
    return weighted_success(arrived(batch, walk), batch.columns["shortest"], walk.taken)


def scores(batch: ExampleBatch, walk: Walk) -> dict[str, tuple[float, float]]:
    """Sums over the rows, and how many they are."""
    rows = float(len(walk.taken))
    found = {"success": arrived(batch, walk).sum(), "spl": reward_of(batch, walk).sum()}
    return {name: (float(total), rows) for name, total in found.items()}
