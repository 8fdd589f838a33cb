"""A sequence of blocks."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.core.recompute import keeping_states, run_block
from foveal.core.state import State
from foveal.distributed.tensor_group import ONE_PART
from foveal.layers.blocks.fused_decode import FusedDecoding, active_plan, plan_blocks, try_fused_decode_step
from foveal.layers.blocks.moe import AuxLosses, add_aux
from foveal.layers.mixers.base import StateShapes, check_input
from foveal.layers.position import AddPositions, check_position_limit
from foveal.ops.padding import zero_padding


class Stack(nn.Module):
    """A sequence of blocks, after absolute positions if there are any.

    The state holds the states of the blocks and, with positions, the number of inputs so far.

    Where ranks cut the `stream`, x and y are the own positions.

    Example:

        >>> blocks = [layers.Block(layers.GRU(8, 16)), layers.Block(layers.GRU(16, 16))]
        >>> stack = layers.Stack(blocks)
        >>> x = torch.randn(2, 5, 8)
        >>> whole, _, _ = stack(x)
        >>> first, state, _ = stack(x[:, :3])
        >>> rest, _, _ = stack(x[:, 3:], state)
        >>> torch.allclose(torch.cat([first, rest], 1), whole, atol=1e-6)
        True
    """

    stream = ONE_PART

    def __init__(self, blocks: list[nn.Module], positioned: AddPositions | None = None):
        super().__init__()
        self.positioned = positioned
        self.blocks = nn.ModuleList(blocks)
        self.limit = None if positioned is None else positioned.limit
        self.shapes: StateShapes = {"blocks": None} | (
            {} if positioned is None else {"count": (), "filled": None}
        )
        self.bounded = self.limit is None and all(block.bounded for block in blocks)

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        check_position_limit(self.limit, capacity or 0)
        state: dict[str, State] = {
            "blocks": tuple(block.init_state(batch, capacity, memory) for block in self.blocks)  # type: ignore[operator]
        }
        if self.positioned is not None:
            device = next(self.parameters()).device
            state |= {"count": torch.zeros(batch, dtype=torch.long, device=device), "filled": 0}
        return state

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth; absolute positions lie below the blocks."""
        return stack_layer_groups(self, self.blocks)

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State, AuxLosses]:
        check_input(x, state, self.shapes, x, self.stream.length(x))
        if state is not None and len(state["blocks"]) != len(self.blocks):
            raise ValueError(f"a state of {len(state['blocks'])} blocks; needed: {len(self.blocks)}")
        after: dict[str, State] = {}
        if self.positioned is not None:
            x, after = self._position(x, state, lengths)
        blocks = list(self.blocks)
        before = [None] * len(blocks) if state is None else state["blocks"]
        states: list[State] = []
        total: AuxLosses = {}
        plan = active_plan(self) if lengths is None else ()
        with self.stream.keeping_own():
            while (layer := len(states)) < len(blocks):
                if plan:
                    x, fused_states = try_fused_decode_step(plan[layer:], x, before[layer:])
                    if fused_states:
                        states += fused_states
                        continue
                block = self.stream.with_length(blocks[layer])
                x, block_state, aux = run_block(block, x, before[layer], lengths)
                states.append(block_state)
                total = add_aux(total, aux)
        return x, {"blocks": tuple(states)} | after, total

    def encode(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None, norm: nn.Module
    ) -> tuple[Float[Tensor, "B T E"], AuxLosses]:
        """Return all positions of `norm(stack(x))`, and `aux`. The norm computes in the stack's stream."""
        with keeping_states(False):
            x, _, aux = self(self.stream.cut(x), None, lengths=lengths)
        return self.stream.gather(norm(x)), aux

    def _position(
        self, x: Tensor, state: State, lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, State]]:
        assert self.positioned is not None
        T, own = self.stream.length(x), self.stream.positions(x)
        count = x.new_zeros(x.shape[0], dtype=torch.long) if state is None else state["count"]
        before = 0 if state is None else state["filled"]
        filled = T + before
        check_position_limit(self.limit, filled)
        offset = count if before else count[:1]  # at the start all rows have the same positions
        x = zero_padding(self.positioned(x, offset + own.start), self.stream.own_lengths(lengths))
        added = T if lengths is None else lengths
        return x, {"count": count + added, "filled": filled}


def fuse_for_decoding(model: object) -> FusedDecoding:
    """Find the Transformer blocks of a model that a kernel can compute together, one position at a time.

    While the result is `active`, the model's stacks use the kernel, on a CPU and without gradients. Up to
    rounding, the outputs equal those of the separate layers. Some blocks are computed as usual: in training
    mode, with hooks, a window or post-norm, without residuals, or with a layer of another class.

    Between this call and the last use, no part of the model may be replaced: layers, parameters, settings,
    hooks, training mode. Values of parameters may change in place. A new call sees every change.
    """
    modules = model.modules() if isinstance(model, nn.Module) else ()
    stacks = (module for module in modules if isinstance(module, Stack))
    return FusedDecoding({stack: plan_blocks(stack.blocks) for stack in stacks})
