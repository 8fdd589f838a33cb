"""The processes of a pipeline, and the ranks of which each is a whole pipeline."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.core.state import State
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.pipeline.cut import block_stacks, cut_into_stages, measure_blocks
from foveal.distributed.pipeline.weights import StageWeights, check_stages
from foveal.distributed.placement import Placement
from foveal.distributed.tree import Gradients, TreeSum


class PipelineRanks(MeshRanks):
    """Processes of which each `pp` are a pipeline with `virtual_stages` stages each. The processes of a stage
    may split the layers, too."""

    runs_slots_together = True

    def __init__(self, process: int, processes: int, pp: int, virtual_stages: int = 1, tp: int = 1):
        super().__init__(process, processes, tp, pp)
        self.stages = pp * virtual_stages
        self._weights: StageWeights | None = None

    def check(self, new_model: Callable[[], nn.Module]) -> str:
        note = super().check(new_model)
        with shapes_only():
            blocks = sum(map(len, block_stacks(new_model())))
        check_stages(blocks, self.stages, self.piping.size)
        return note

    def check_micro_batches(self, count: int) -> None:
        depth = self.piping.size
        rounds = max(1, count // depth)
        if count < depth or (self.stages > depth and count % rounds):
            raise UserError(
                f"--pp {depth}: {self.stages} stages need {depth} slots of a batch for each rank, or a "
                f"multiple of {depth}, and this run has {count}: start it with other --slots"
            )

    def place(self, model: nn.Module, compute: Callable[..., Any]) -> Placement:
        costs = measure_blocks(model, compute)  # of whole layers, so that all parts of a stage agree
        check_stages(len(costs), self.stages, self.piping.size)
        stages = cut_into_stages([cost.operations for cost in costs], self.stages)
        is_first_rank = self.rank == 0
        self._weights = StageWeights(model, self.piping, costs, stages, self.parts(model), is_first_rank)
        return self._weights

    def sum(self, tree: TreeSum[Gradients], weights: Sequence[Tensor]) -> Gradients:
        assert self._weights is not None
        return self._weights.sum_over_stages(super().sum(tree, weights), weights)

    def join_carries(self, carries: list[list[State]]) -> list[list[State]]:
        assert self._weights is not None
        parts = carries[:: self.splitting.size]
        of_ranks = [parts[rank :: self.size] for rank in range(self.size)]
        return [
            [self._weights.join_states(of_stages) for of_stages in zip(*lists, strict=True)]
            for lists in of_ranks
        ]
