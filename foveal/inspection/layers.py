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

Places = tuple[int, ...]
"""One number for each axis of a grid."""
POOLINGS = tuple(
    getattr(torch.ops.aten, f"{name}_pool{axes}")
    for name, axes in (
        ("avg", "1d"),
        ("avg", "2d"),
        ("avg", "3d"),
        ("max", "2d_with_indices"),
        ("max", "3d_with_indices"),
    )
)


@dataclass(frozen=True)
class Layer:
    """A module, and what it makes of one example.

    `parameters` and `multiply_adds` are its own, without those of the modules inside; multiply-adds are those
    of products and convolutions, a bias not counted. `memory` is the bytes of its output in float32. `field`
    says for a grid how much of the input one of its places sees, on each axis; else it is empty.
    """

    name: str
    kind: str
    output: tuple[int, ...]
    parameters: int
    multiply_adds: int
    memory: int
    field: Places


def layers_of(
    model: nn.Module, shape: Sequence[int], run: Callable[[Any, Tensor], Any] | None = None
) -> list[Layer]:
    """The layers of `model` in the order in which they end: modules with nothing inside, and others that have
    parameters or multiply by themselves.

    `shape` is one example's, without the batch axis; `run(model, x)` says how the model is called, if not by
    `model(x)`. The model itself stays as it is.
    """
    shadow = copy.deepcopy(model).to("meta").eval()
    x = torch.empty(1, *shape, device="meta")
    watch = _Watch(x)
    for name, module in shadow.named_modules():
        module.register_forward_pre_hook(watch.entering(name))
        module.register_forward_hook(watch.leaving(name))
    with torch.no_grad(), watch:
        shadow(x) if run is None else run(shadow, x)
    parameters, found = _parameters(shadow, watch.outputs), []
    for name, output in watch.outputs.items():
        module, own = shadow.get_submodule(name), watch.products.get(name, 0)
        if name in parameters or own or not list(module.children()):
            sizes = tuple(output.shape[1:]), parameters.get(name, 0), own, 4 * output.numel()
            found.append(Layer(name, type(module).__name__, *sizes, watch.field(output)))
    return found


def _parameters(model: nn.Module, called: Collection[str]) -> dict[str, int]:
    """How many each called module has: its own, and those of modules inside that are not called themselves
    (of projections that are made in one product, say)."""
    counts: dict[str, int] = {}
    for name, weight in model.named_parameters():
        owner = name.rpartition(".")[0]
        while owner and owner not in called:
            owner = owner.rpartition(".")[0]
        counts[owner] = counts.get(owner, 0) + weight.numel()
    return counts


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what each module multiplies, and follows how far a place of a grid sees: a window adds
    `(kernel - 1) * dilation * jump` to it, where `jump` is the product of the strides before (Araujo, Norris
    and Sim 2019)."""

    def __init__(self, x: Tensor):
        super().__init__()  # type: ignore[no-untyped-call]
        self.outputs: dict[str, Tensor] = {}
        self.products: dict[str, int] = {}
        self._inside: list[str] = []
        self._seen: dict[int, tuple[Tensor, Places, Places]] = {}
        axes = x.dim() - 2
        if axes > 0:
            self._put(x, (1,) * axes, (1,) * axes)

    def entering(self, name: str) -> Callable[..., None]:
        return lambda module, given: self._inside.append(name)

    def leaving(self, name: str) -> Callable[..., None]:
        def leave(module: nn.Module, given: Any, output: Any) -> None:
            self._inside.pop()
            found = _first(getattr(_first(output), "vectors", output))  # those of a memory
            if isinstance(found, Tensor):
                self.outputs[name] = found

        return leave

    def field(self, x: Tensor) -> Places:
        """What a place of `x` sees; empty if that is no grid."""
        return self._seen[id(x)][1] if id(x) in self._seen else ()

    def _put(self, x: Tensor, field: Places, jump: Places) -> None:
        self._seen[id(x)] = x, field, jump  # the tensor is kept, so that no other gets its id

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        operation = function.overloadpacket
        if operation in flop_registry and self._inside:
            flops = flop_registry[operation](*args, **kwargs, out_val=result)
            name = self._inside[-1]
            self.products[name] = self.products.get(name, 0) + flops // 2
        self._follow(operation, args, _first(result))
        return result

    def _follow(self, operation: Any, args: tuple[Any, ...], y: Any) -> None:
        parts = [part for arg in args for part in (arg if isinstance(arg, (tuple, list)) else (arg,))]
        known = [self._seen[id(part)] for part in parts if id(part) in self._seen]
        if not known or not isinstance(y, Tensor) or y.dim() != known[0][0].dim():
            return
        x, _, jump = known[0]
        window = _window(operation, x, y, args)
        if window is not None:
            widest = (max(each) for each in zip(*(field for _, field, _ in known), strict=True))
            reach, stride = window
            field = tuple(f + r * j for f, r, j in zip(widest, reach, jump, strict=True))
            self._put(y, field, tuple(j * s for j, s in zip(jump, stride, strict=True)))


def _window(operation: Any, x: Tensor, y: Tensor, args: tuple[Any, ...]) -> tuple[Places, Places] | None:
    """How many places of `x` a place of `y` sees beside one, and the stride; None where it may see any."""
    aten, axes = torch.ops.aten, x.dim() - 2
    if operation is aten.convolution and not args[6]:
        kernel, stride, dilation = args[1].shape[2:], _each(args[3], axes), _each(args[5], axes)
        return tuple((k - 1) * d for k, d in zip(kernel, dilation, strict=True)), stride
    if operation in POOLINGS:
        kernel = _each(args[1], axes)
        stride = _each(args[2], axes) if len(args) > 2 and args[2] else kernel
        return tuple(k - 1 for k in kernel), stride
    if operation is aten.slice:
        step = args[4] if len(args) > 4 else 1
        return (0,) * axes, tuple(step if axis + 2 == args[1] else 1 for axis in range(axes))
    if y.shape[2:] == x.shape[2:] or operation is aten.constant_pad_nd:
        return (0,) * axes, (1,) * axes
    if operation in (aten.mean, aten._adaptive_avg_pool2d):
        shares = tuple(-(-before // after) for before, after in zip(x.shape[2:], y.shape[2:], strict=True))
        return tuple(share - 1 for share in shares), shares
    return None


def _each(number: Any, axes: int) -> Places:
    numbers = tuple(number) if isinstance(number, (tuple, list)) else (number,)
    return numbers if len(numbers) == axes else numbers * axes


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) and result else result
