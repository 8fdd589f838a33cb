"""What each layer of a module makes of an input: shapes, parameters, multiply-adds, receptive fields.

Nothing is computed: the module runs on torch's meta device, which knows shapes alone.
"""

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from foveal.inspection.layers.receptive_field import AxisSizes, ReceptiveFieldTracker


@dataclass(frozen=True)
class LayerSummary:
    """A module, and what it makes of one example.

    `parameters` and `multiply_adds` are its own, without those of the modules inside; multiply-adds are those
    of products and convolutions, a bias not counted. `memory` is the bytes of its output in float32. `field`
    says for a grid how much of the input one of its places sees, on each axis; it is empty for what is no
    grid, and for places that may see all of it.
    """

    name: str
    kind: str
    output: tuple[int, ...]
    parameters: int
    multiply_adds: int
    memory: int
    field: AxisSizes


def summarize_layers(
    model: nn.Module, shape: Sequence[int], run: Callable[[Any, Tensor], Any] | None = None
) -> list[LayerSummary]:
    """The layers of `model` in the order in which they end: modules with nothing inside, and others that have
    parameters or multiply by themselves.

    `shape` is one example's, without the batch axis; `run(model, x)` says how the model is called, if not by
    `model(x)`. The model itself stays as it is.
    """
    shadow = copy.deepcopy(model).to("meta").eval()
    x = torch.empty(1, *shape, device="meta")
    watch = _LayerRecorder(x)
    for name, module in shadow.named_modules():
        module.register_forward_pre_hook(watch.pre_hook(name))
        module.register_forward_hook(watch.post_hook(name))
    with torch.no_grad(), watch:
        shadow(x) if run is None else run(shadow, x)
    parameters, found = _parameter_counts(shadow, watch.outputs), []
    for name, output in watch.outputs.items():
        module, own = shadow.get_submodule(name), watch.products.get(name, 0)
        if name in parameters or own or not list(module.children()):
            sizes = tuple(output.shape[1:]), parameters.get(name, 0), own, 4 * output.numel()
            found.append(LayerSummary(name, type(module).__name__, *sizes, watch.fields.size_of(output)))
    return found


def _parameter_counts(model: nn.Module, called: Collection[str]) -> dict[str, int]:
    """How many each called module has: its own, and those of modules inside that are not called themselves
    (of projections that are made in one product, say)."""
    counts: dict[str, int] = {}
    for name, weight in model.named_parameters():
        owner = name.rpartition(".")[0]
        while owner and owner not in called:
            owner = owner.rpartition(".")[0]
        counts[owner] = counts.get(owner, 0) + weight.numel()
    return counts


class _LayerRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what each module multiplies, and follows how far a place of a grid sees."""

    def __init__(self, x: Tensor):
        super().__init__()  # type: ignore[no-untyped-call]
        self.outputs: dict[str, Tensor] = {}
        self.products: dict[str, int] = {}
        self._module_stack: list[str] = []
        self.fields = ReceptiveFieldTracker(x)

    def pre_hook(self, name: str) -> Callable[..., None]:
        return lambda module, given: self._module_stack.append(name)

    def post_hook(self, name: str) -> Callable[..., None]:
        def leave(module: nn.Module, given: Any, output: Any) -> None:
            self._module_stack.pop()
            found = _first(getattr(_first(output), "vectors", output))  # those of a memory
            if isinstance(found, Tensor):
                self.outputs[name] = found

        return leave

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        operation = function.overloadpacket
        if operation in flop_registry and self._module_stack:
            flops = flop_registry[operation](*args, **kwargs, out_val=result)
            name = self._module_stack[-1]
            self.products[name] = self.products.get(name, 0) + flops // 2
        self.fields.follow(operation, args, result)
        return result


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) and result else result
