"""An objective and an optimizer that tell a recorder which part of a step begins."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.distributed.placement import Placement
from foveal.distributed.tree import Gradients
from foveal.layers.blocks.stack import Stack
from foveal.studies.plan.recorder import StepRecorder
from foveal.training.optim import Optimizer


class WatchedObjective:
    """An objective of a model with `stacks` of blocks."""

    def __init__(self, objective: Any, stacks: Sequence[Stack], recorder: StepRecorder):
        self._objective, self._recorder = objective, recorder
        self.kept = 0
        """Bytes of the blocks that wait for the backward pass of a micro-batch."""
        self.passed_on = 0
        """Bytes that the blocks pass on to each other for a micro-batch."""
        self.recomputed_flops = 0
        """Floating-point operations of blocks that are computed again in the backward pass."""
        self.positions = 0
        """Positions that the first stack reads."""
        self._held = self._flops = 0
        for stack in stacks:
            stack.register_forward_pre_hook(self._enter)
            stack.register_forward_hook(self._leave)
            for block in stack.blocks:
                block.register_forward_pre_hook(self._enter_block)
                block.register_forward_hook(self._leave_block, always_call=True)

    def __call__(self, batch: Any, carry: Any) -> Any:
        self._recorder.phase = "forward"
        result = self._objective(batch, carry)
        self._recorder.phase = "backward"
        return result

    def weights(self, batch: Any) -> dict[str, float]:
        weights: dict[str, float] = self._objective.weights(batch)
        return weights

    def start(self, batch: Any) -> Any:
        return self._objective.start(batch)

    def preview(self, step: int) -> None:
        return None

    def _enter(self, stack: Stack, inputs: Any) -> None:
        self.positions = self.positions or stack.stream.length(inputs[0])
        self._held = sum(self._recorder.held.values())

    def _leave(self, stack: nn.Module, inputs: Any, outputs: Any) -> None:
        self.kept = sum(self._recorder.held.values()) - self._held
        self.passed_on = outputs[0].nbytes

    def _enter_block(self, block: nn.Module, inputs: Any) -> None:
        self._flops = self._recorder.flops

    def _leave_block(self, block: nn.Module, inputs: Any, outputs: Any) -> None:
        if self._recorder.phase == "backward":
            self.recomputed_flops += self._recorder.flops - self._flops


class WatchedOptimizer(Optimizer):
    """An optimizer after its first step: there are states, and the gradients of that step."""

    def __init__(
        self, model: nn.Module, config: OptimizerConfig, placement: Placement, recorder: StepRecorder
    ):
        super().__init__(model, config, placement)
        self._recorder = recorder
        for weight in self.trainable.values():
            recorder.hold(weight, "weights")
            weight.grad = weight.new_empty(weight.shape)
        self.step(config.lr, 1.0)
        for weight in self.trainable.values():
            assert weight.grad is not None
            recorder.hold(weight.grad, "gradients")
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(self._hold_gradient)  # type: ignore[no-untyped-call]

    def take_gradients(self) -> Gradients:
        self._recorder.phase = "update"
        return super().take_gradients()

    def _hold_gradient(self, parameter: Tensor) -> None:
        assert parameter.grad is not None
        self._recorder.hold(parameter.grad, "gradients")
