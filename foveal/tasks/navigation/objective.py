"""The objectives of navigation: imitation of shortest paths, and REINFORCE on the agent's own rollouts."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State, select_rows
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.length_limit import LengthLimit
from foveal.objectives.preview import PreviewExamples
from foveal.objectives.stateless import StatelessObjective
from foveal.ops.attention.hard_attention import sample_position
from foveal.ops.padding import sequence_mask
from foveal.tasks.navigation.grid_world import MOVES, STOP, render_views, rollout, step_poses
from foveal.tasks.navigation.model import NavigationAgent
from foveal.tasks.navigation.path_length import success_weighted_by_path_length

ROLLOUTS_PER_ROW = 4
"""Rollouts of each row that REINFORCE compares."""


class Trajectory(NamedTuple):
    """B rollouts of at most T moves."""

    moves: Int[Tensor, "B T"]
    """The moves. Entries after the end of a rollout have no meaning."""
    steps_taken: Int[Tensor, " B"]
    """The number of moves of each rollout, without the stop."""
    end_position: Int[Tensor, "B 2"]
    """The square where each rollout ended."""
    stopped: Bool[Tensor, " B"]
    """Whether the agent chose to stop."""
    log_prob: Float[Tensor, " B"]
    """`sum_t log p(a_t)` of the moves of each rollout."""

    def rows(self) -> list[list[int]]:
        """Return the moves of each rollout, with the stop."""
        lengths = (self.steps_taken + self.stopped).tolist()
        return [moves[:length] for moves, length in zip(self.moves.tolist(), lengths, strict=True)]


class NavigationObjective(StatelessObjective):
    """`-sum_t log p(a_t | a_1 .. a_(t-1), views, instruction)` in nats over the moves of the shortest path.

    Columns of a batch: `source`, `map`, `start`; for training and evaluation also `target`, `goal` and
    `shortest`. Evaluation also rolls out at most `length_limit` of the likeliest moves, for the metrics
    `success` and `spl`.
    """

    def __init__(
        self,
        model: NavigationAgent,
        length_limit: LengthLimit,
        preview_examples: PreviewExamples | None = None,
    ):
        self.model, self.length_limit, self.preview_examples = model, length_limit, preview_examples

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return {"loss": float(batch.tokens)}

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        moves, lengths = batch.columns["target"], batch.lengths["target"]
        memory, cells = self.encode(batch), batch.columns["map"]
        poses = rollout(cells, batch.columns["start"], moves[:, :-1])
        before = F.pad(moves[:, :-1], (1, 0), value=self.model.no_move)
        logits, _ = self.model(render_views(cells, poses), before, self.model.init_state(memory), lengths)
        scored = sequence_mask(lengths, moves.shape[1])
        nats = F.cross_entropy(at_least_float32(logits)[scored], moves[scored], reduction="sum")
        metrics = {"loss": (float(nats.detach()), float(batch.tokens))}
        if not self.model.training:
            metrics |= navigation_metrics(batch, self.rollout(batch, memory, draw=False))
        return ObjectiveOutput({"loss": Term(nats, float(batch.tokens))}, metrics), None

    def encode(self, batch: ExampleBatch) -> Memory:
        """Encode the instructions."""
        memory, _ = self.model.encoder(batch.columns["source"], batch.lengths["source"])
        return memory

    def rollout(self, batch: ExampleBatch, memory: Memory, draw: bool) -> Trajectory:
        """Roll out the agent's own moves, sampled or likeliest, until all agents stop or the limit is
        reached."""
        cells, pose = batch.columns["map"], batch.columns["start"]
        state, before = self.model.init_state(memory), pose.new_full((len(pose),), self.model.no_move)
        active, steps_taken = torch.ones_like(before, dtype=torch.bool), torch.zeros_like(before)
        log_prob, moves = at_least_float32(memory.summary).new_zeros(len(pose)), []
        allowed = torch.ones(len(pose), len(MOVES), dtype=torch.bool, device=pose.device)
        rows = torch.arange(len(pose), device=pose.device)
        for _ in range(self.length_limit.for_source(0)):
            if 2 * int(active.sum()) <= len(rows):  # drop stopped rollouts when they are half of the rows
                remaining = active[rows].nonzero()[:, 0]
                rows, state = rows[remaining], select_rows(state, remaining)
            logits, state = self.model(render_views(cells[rows], pose[rows, None]), before[rows, None], state)
            move, move_log_prob, _ = sample_position(logits[:, 0], allowed[rows], draw)
            before = torch.full_like(before, STOP).index_copy(0, rows, move)
            moves.append(before)
            log_prob = log_prob.index_add(0, rows, torch.where(active[rows], move_log_prob, 0.0))
            active = active & (before != STOP)
            pose = torch.where(active[:, None], step_poses(cells, pose, before), pose)
            steps_taken = steps_taken + active
            if not active.any():
                break
        return Trajectory(torch.stack(moves, 1), steps_taken, pose[:, :2], ~active, log_prob)

    def predict_batch(self, batch: ExampleBatch) -> Trajectory:
        """Roll out the likeliest moves. The model must be in evaluation mode."""
        batch = batch.to(next(self.model.parameters()).device)
        with torch.inference_mode():
            return self.rollout(batch, self.encode(batch), draw=False)

    def preview(self, step: int) -> str | None:
        """Return a few held-out instructions with the agent's moves, as text."""
        if self.preview_examples is None:
            return None
        return self.preview_examples.text(self.predict_batch(self.preview_examples.batch).rows())


class ReinforceNavigationObjective(NavigationObjective):
    """REINFORCE (Williams 1992) on the agent's own rollouts: the gradient of the expected reward R, which is
    the SPL.

    Each row has K = `ROLLOUTS_PER_ROW` rollouts. The gradient is `1/K sum_k (R_k - b_k) grad log p(rollout
    k)`, with `b_k = 1 / (K - 1) sum_(j != k) R_j`, which does not depend on rollout k (Kool et al. 2019). The
    metric `loss` is 1 minus the mean reward. Evaluation uses the likeliest moves.
    """

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return {"walks": float(len(batch.rows))}

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        rows, memory = len(batch.rows), self.encode(batch)
        count = ROLLOUTS_PER_ROW if self.model.training else 1
        indices = torch.arange(rows, device=memory.mask.device).repeat(count)
        columns = {name: column[indices] for name, column in batch.columns.items()}
        lengths = {name: length[indices] for name, length in batch.lengths.items()}
        repeated = ExampleBatch(batch.rows.repeat(count), columns, lengths, batch.row_tokens.repeat(count))
        trajectory = self.rollout(repeated, memory.select_rows(indices), draw=self.model.training)
        reward = rewards(repeated, trajectory).view(count, rows)
        advantage = (reward - reward.mean(0)) * count / max(1, count - 1)
        term = Term(-(advantage.flatten() * trajectory.log_prob).sum() / count, float(rows))
        metrics = navigation_metrics(repeated, trajectory)
        total_reward, rollouts = metrics["spl"]
        loss_metrics = {"loss": (rollouts - total_reward, rollouts), "reward": (total_reward, rollouts)}
        return ObjectiveOutput({"walks": term}, loss_metrics | metrics), None


def reached_goal(batch: ExampleBatch, rollout: Trajectory) -> Bool[Tensor, " B"]:
    """Return which rollouts stopped at the goal."""
    goal = batch.columns["goal"].to(rollout.end_position.device)
    return rollout.stopped & (rollout.end_position == goal).all(1)


def rewards(batch: ExampleBatch, rollout: Trajectory) -> Float[Tensor, " B"]:
    """Return the success weighted by path length of each rollout."""
    return success_weighted_by_path_length(
        reached_goal(batch, rollout), batch.columns["shortest"], rollout.steps_taken
    )


def navigation_metrics(batch: ExampleBatch, rollout: Trajectory) -> dict[str, tuple[float, float]]:
    """Return the sums of the metrics over the rows, and the number of rows."""
    rows = float(len(rollout.steps_taken))
    sums = {"success": reached_goal(batch, rollout).sum(), "spl": rewards(batch, rollout).sum()}
    return {name: (float(total), rows) for name, total in sums.items()}
