"""Sizes of each layer of a module: output shape, parameters, multiply-adds, memory, receptive field.

No values are computed: the module runs on PyTorch's meta device, whose tensors have only shapes.
"""

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.inspection.layers.receptive_field import AxisSizes, ReceptiveFieldTracker
from foveal.inspection.operation_mode import OperationMode, flop_formulas


@dataclass(frozen=True)
class LayerSummary:
    """The sizes of a module for a single example.

    `parameters` and `multiply_adds` exclude those of submodules. Multiply-adds count matrix products and
    convolutions, without biases. `memory` is the bytes of the output in float32. `field` is the receptive
    field of a position of an output grid, on each axis. `field` is empty if the output is not a grid, or if a
    position may depend on the whole input.
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
    """Return the layers of `model` in the order in which their calls end.

    Layers are modules without submodules, and modules with parameters or matrix products of their own.
    `shape` is the shape of a single example, without the batch axis. `run(model, x)` calls the model; the
    default is `model(x)`. The model does not change.
    """
    meta_model = copy.deepcopy(model).to("meta").eval()
    x = torch.empty(1, *shape, device="meta")
    recorder = _LayerRecorder(x)
    for name, module in meta_model.named_modules():
        module.register_forward_pre_hook(recorder.pre_hook(name))
        module.register_forward_hook(recorder.post_hook(name))
    with torch.no_grad(), recorder:
        meta_model(x) if run is None else run(meta_model, x)
    parameters, layers = _parameter_counts(meta_model, recorder.outputs), []
    for name, output in recorder.outputs.items():
        module, products = meta_model.get_submodule(name), recorder.products.get(name, 0)
        if name in parameters or products or not list(module.children()):
            sizes = tuple(output.shape[1:]), parameters.get(name, 0), products, 4 * output.numel()
            layers.append(LayerSummary(name, type(module).__name__, *sizes, recorder.fields.size_of(output)))
    return layers


def _parameter_counts(model: nn.Module, called: Collection[str]) -> dict[str, int]:
    """Return the number of parameters of each called module.

    Parameters of submodules that are not called themselves (such as projections computed in a single product)
    count for the enclosing module.
    """
    counts: dict[str, int] = {}
    for name, weight in model.named_parameters():
        owner = name.rpartition(".")[0]
        while owner and owner not in called:
            owner = owner.rpartition(".")[0]
        counts[owner] = counts.get(owner, 0) + weight.numel()
    return counts


class _LayerRecorder(OperationMode):  # type: ignore[no-untyped-call]
    """Counts the multiply-adds of each module, and tracks receptive fields."""

    def __init__(self, x: Tensor):
        super().__init__()
        self.outputs: dict[str, Tensor] = {}
        self.products: dict[str, int] = {}
        self._module_stack: list[str] = []
        self._flop_formulas = flop_formulas()
        self.fields = ReceptiveFieldTracker(x)

    def pre_hook(self, name: str) -> Callable[..., None]:
        return lambda module, inputs: self._module_stack.append(name)

    def post_hook(self, name: str) -> Callable[..., None]:
        def leave(module: nn.Module, inputs: Any, output: Any) -> None:
            self._module_stack.pop()
            tensor = first_tensor(output)
            if tensor is not None:
                self.outputs[name] = tensor

        return leave

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        operation = function.overloadpacket
        if operation in self._flop_formulas and self._module_stack:
            flops = self._flop_formulas[operation](*args, **kwargs, out_val=result)
            name = self._module_stack[-1]
            self.products[name] = self.products.get(name, 0) + flops // 2
        self.fields.follow(operation, args, result)
        return result


def first_tensor(output: Any) -> Tensor | None:
    """Return the first tensor of a module's output; of a memory, its vectors. None if there is none."""
    tensor = _first(getattr(_first(output), "vectors", output))
    return tensor if isinstance(tensor, Tensor) else None


def _first(result: Any) -> Any:
    """Return the first item of a tuple or list, and other values unchanged."""
    return result[0] if isinstance(result, (tuple, list)) and result else result
