"""Walks by an instruction: learnt from paths and ways back to them, then from where one's own walks end."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.core.result import Result, Term
from foveal.core.runtime import at_least_single
from foveal.core.state import State, select
from foveal.data.batching import ExampleBatch
from foveal.data.grid_world import MOVES, STOP, follow, step, view, ways
from foveal.data.room import Room
from foveal.models.navigate import Walker
from foveal.ops.hard_attention import choose_place
from foveal.ops.padding import present
from foveal.ops.path_length import weighted_success
from foveal.tasks.shown import Shown

OWN = 0.25
"""The chance of a row to be walked by one's own moves in imitation, up to the first that is wrong."""
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


class NavigateTask:
    """`-sum_t log p(a_t | a_1 .. a_(t-1), views, instruction)` in nats over the moves of the path.

    In training, rows by chance begin with one's own moves, which are drawn; behind the first that is not the
    path's, a shortest way to its end is gone and learnt. So what to do after a mistake is shown too (DAgger,
    Ross et al. 2011).

    Columns of a batch: `source`, `map`, `start`; to train on and to be scored also `target`, `goal` and
    `shortest`. Evaluated, the likeliest moves are also walked, at most `room` of them: `success` and `spl`.
    """

    def __init__(self, model: Walker, room: Room, shown: Shown | None = None):
        self.model, self.room, self.shown = model, room, shown

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return {"loss": float(batch.tokens)}

    def start(self, batch: ExampleBatch) -> State:
        """Walks do not know each other: nothing is carried."""
        return None

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        memory, cells = self.read(batch), batch.columns["map"]
        moves, lengths = batch.columns["target"], batch.lengths["target"]
        right = F.one_hot(moves, len(MOVES)).bool()
        if self.model.training:
            moves, lengths, right = self._partly_own(batch, memory, right)
        poses = follow(cells, batch.columns["start"], moves[:, :-1])
        before = F.pad(moves[:, :-1], (1, 0), value=self.model.none)
        logits, _ = self.model(view(cells, poses), before, self.model.start(memory), lengths)
        scored = present(lengths, moves.shape[1])
        log_p = at_least_single(logits)[scored].log_softmax(1)
        nats = -log_p.masked_fill(~right[scored], -torch.inf).logsumexp(1).sum()
        metrics = {"loss": (float(nats.detach()), float(lengths.sum()))}
        if not self.model.training:
            metrics |= scores(batch, self.walk(batch, memory, draw=False))
        return Result({"loss": Term(nats, float(batch.tokens))}, metrics), None

    def _partly_own(
        self, batch: ExampleBatch, memory: Memory, right: Bool[Tensor, "B T M"]
    ) -> tuple[Int[Tensor, "B U"], Int[Tensor, " B"], Bool[Tensor, "B U M"]]:
        """Moves, how many they are, and which are right: of paths, and of own walks that were led back."""
        moves, lengths = batch.columns["target"], batch.lengths["target"].clone()
        own = (torch.rand(len(moves), device=moves.device) < OWN).nonzero()[:, 0]
        if len(own):
            some = selected(batch, own)
            with torch.no_grad():
                gone, better = led_back(some, self.walk(some, memory.rows(own), draw=True))
            size = max(moves.shape[1], gone.shape[1])
            moves, gone = (F.pad(part, (0, size - part.shape[1]), value=STOP) for part in (moves, gone))
            right, better = (F.pad(part, (0, 0, 0, size - part.shape[1])) for part in (right, better))
            moves[own], right[own], lengths[own] = gone, better, (gone != STOP).sum(1) + 1
        return moves, lengths, right

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
        again = selected(batch, which)
        walk = self.walk(again, memory.rows(which), draw=self.model.training)
        reward = reward_of(again, walk).view(times, rows)
        advantage = (reward - reward.mean(0)) * times / max(1, times - 1)
        term = Term(-(advantage.flatten() * walk.log_chance).sum() / times, float(rows))
        found = scores(again, walk)
        gained, walked = found["spl"]
        told = {"loss": (walked - gained, walked), "reward": (gained, walked)}
        return Result({"walks": term}, told | found), None


def selected(batch: ExampleBatch, which: Int[Tensor, " N"]) -> ExampleBatch:
    """Some rows of a batch, in this order; also several times."""
    columns = {name: column[which] for name, column in batch.columns.items()}
    lengths = {name: length[which] for name, length in batch.lengths.items()}
    return ExampleBatch(batch.rows[which.cpu()], columns, lengths, int(lengths["target"].sum()))


def led_back(batch: ExampleBatch, walk: Walk) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T M"]]:
    """The moves of walks up to the first that is not the path's, and then of a shortest way to its end; and
    which were right at each step, the path's or all with which a shortest way begins.

    Who stops too early has stopped; there are stops behind the end.
    """
    best = ways(batch.columns["map"], batch.columns["goal"])
    longest = max(batch.columns["target"].shape[1], walk.moves.shape[1])
    path, own = (
        F.pad(part, (0, longest - part.shape[1]), value=STOP)
        for part in (batch.columns["target"], walk.moves)
    )
    pose, rows = batch.columns["start"], torch.arange(len(own), device=own.device)
    astray, ended = torch.zeros(2, len(own), dtype=torch.bool, device=own.device)
    moves, right = list[Tensor](), list[Tensor]()
    while not ended.all():
        row, column, heading = pose.unbind(1)
        good = best[rows, row, column, heading]
        move = good.byte().argmax(1)
        if len(moves) < longest:
            said, drawn = path[:, len(moves)], own[:, len(moves)]
            good = torch.where(astray[:, None], good, F.one_hot(said, len(MOVES)).bool())
            move = torch.where(astray, move, drawn)
            astray = astray | (move != said)
        moves.append(torch.where(ended, STOP, move))
        right.append(good)
        ended = ended | (move == STOP)
        pose = step(batch.columns["map"], pose, moves[-1])
    return torch.stack(moves, 1), torch.stack(right, 1)


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
