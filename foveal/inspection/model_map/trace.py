"""The flow of data through a model for one input, from module to module.

Each tensor has its sources: the modules, or the operations between modules, that it was computed by. An
operation outside of such modules is passed through if it has a single source (a view, a scaling), and is a
place of the graph if it joins several (the `+` of a residual connection). An operation with a parameter
belongs to the module of the parameter, which may never be called itself.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from foveal.inspection.layers.compute import first_tensor
from foveal.inspection.operation_mode import OperationMode, flop_formulas, without_fast_path
from foveal.ops.jit.dispatch import reference_only

INPUT, OUTPUT = "input", "output"
"""The symbols of the model's inputs and of its output."""
Sources = frozenset[str]
SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "×",
    "div": "/",
    "cat": "concat",
    "stack": "stack",
    "maximum": "max",
}
"""The names of operations that join values."""
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution")
"""Operations that are places of the graph even with a single source, as queries times keys."""
ATTENTION = "attention"


@dataclass
class Place:
    """A place of the graph: a module, an operation between modules, an input, or the output."""

    path: str
    """The module, or the innermost module around the operation."""
    symbol: str = ""
    """The operation; empty for a module."""
    shape: tuple[int, ...] = ()
    """The output for the input, without the axis of the batch."""
    multiply_adds: int = 0


@dataclass
class Trace:
    """All places in the order in which they were first computed, and the flow between them."""

    places: dict[str, Place] = field(default_factory=dict)
    edges: dict[tuple[str, str], None] = field(default_factory=dict)  # a set in the order of the computation
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The output of each called module."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The class of each called module."""
    parameters: dict[str, int] = field(default_factory=dict)
    """The number of parameters by the module that has them, each counted once."""


def trace_model(model: nn.Module, inputs: Mapping[str, Tensor], run: Callable[[], Any]) -> Trace:
    """Return the flow of data while `run()` runs the model on the named inputs. The model does not change.

    Kernels are replaced by their reference equations, since a kernel hides its operations.
    """
    tracer = _Tracer(model, inputs)
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            before, after = tracer.hooks(path, module)
            hooks.callback(module.register_forward_pre_hook(before).remove)
            hooks.callback(module.register_forward_hook(after, always_call=True).remove)
        with torch.no_grad(), reference_only(), without_fast_path(), tracer:
            result = run()
    tracer.finish(result)
    return tracer.trace


class _Tracer(OperationMode):  # type: ignore[no-untyped-call]
    """Follows the sources of every tensor."""

    def __init__(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.trace = Trace()
        self._active: list[str] = []
        self._indices = set[str]()  # inputs of integers, whose masks and lengths are no data that are joined
        self._leaves = {path for path, module in model.named_modules() if not [*module.children()]}
        # Tensors are kept, so that no other tensor gets the same id.
        self._sources: dict[int, tuple[Tensor, Sources]] = {}
        self._owners: dict[int, tuple[Tensor, Sources]] = {}
        self._flops = flop_formulas()
        for name, parameter in model.named_parameters(remove_duplicate=False):
            owner = name.rpartition(".")[0]
            known = self._owners.get(id(parameter), (parameter, frozenset[str]()))[1]
            self._owners[id(parameter)] = parameter, known | {owner}
            if not known:
                counts = self.trace.parameters
                counts[owner] = counts.get(owner, 0) + parameter.numel()
        for name, column in inputs.items():
            key = f"{INPUT}:{name}"
            self.trace.places[key] = Place(name, INPUT, tuple(column.shape[1:]))
            self._sources[id(column)] = column, frozenset({key})
            if not column.is_floating_point():
                self._indices.add(key)

    def hooks(self, path: str, module: nn.Module) -> tuple[Callable[..., None], Callable[..., None]]:
        """Return the hooks before and after the calls of a module."""

        def before(_: nn.Module, inputs: Any) -> None:
            self._active.append(path)

        def after(_: nn.Module, inputs: Any, output: Any) -> None:
            self._active.pop()
            tensor = first_tensor(output)
            if tensor is None:
                return
            self.trace.shapes[path] = tuple(tensor.shape[1:])
            self.trace.kinds[path] = type(module).__name__
            unchanged = any(tensor is item for item in _tensors(inputs))
            if path in self._leaves and not unchanged:
                self._connect(path, Place(path), self._sources_of(inputs), tensor)
                for each in _tensors(output):
                    self._sources[id(each)] = each, frozenset({path})

        return before, after

    def finish(self, result: Any) -> None:
        """Add the output."""
        sources = self._sources_of(result)
        tensor = next(_tensors(result), None)
        if sources and tensor is not None:
            self._connect(OUTPUT, Place(OUTPUT, OUTPUT), sources, tensor)

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        values = [*args, *kwargs.values()]
        sources = self._sources_of(values)
        owners = frozenset(
            name for each in _tensors(values) for name in self._owners.get(id(each), (None, frozenset()))[1]
        )
        name = function.overloadpacket.__name__.removesuffix("_")
        self._follow(name, sources, owners, result)
        self._count(function.overloadpacket, args, kwargs, result)
        return result

    def _follow(self, name: str, sources: Sources, owners: Sources, result: Any) -> None:
        """Give the results of an operation their sources."""
        inside = self._active[-1] if self._active else ""
        self._place = inside
        computed = sources - self._indices
        if inside in self._leaves or inside in self.trace.places:
            key, place = inside, Place(inside)
        elif owners and sources:
            path = self._owner(owners, inside)
            key, place = path, Place(path)
        elif owners:
            for each in _tensors(result):
                self._owners[id(each)] = each, owners
            return
        elif (len(computed) > 1 and name in SYMBOLS) or (sources and self._is_product(name)):
            symbol = SYMBOLS.get(name, "product")
            symbol = ATTENTION if ATTENTION in name else symbol
            key = f"{inside}/{symbol} of {', '.join(sorted(computed or sources))}"
            place, sources = Place(inside, symbol), computed or sources
        else:
            for each in _tensors(result):
                if sources:
                    self._sources[id(each)] = each, computed or sources
            return
        self._place = key
        tensor = next(_tensors(result), None)
        if tensor is not None and (sources or key in self.trace.places):
            self._connect(key, place, sources, tensor)
            for each in _tensors(result):
                self._sources[id(each)] = each, frozenset({key})

    def _is_product(self, name: str) -> bool:
        return name in PRODUCTS or ATTENTION in name

    def _owner(self, owners: Sources, inside: str) -> str:
        """Return the module of an operation's parameters; the running one, if they are inside it. Of shared
        parameters, return the module that has not run yet."""
        if inside and any(path.startswith(f"{inside}.") or path == inside for path in owners):
            return inside
        new = sorted(path for path in owners if path not in self.trace.places)
        return new[0] if new else min(owners)

    def _connect(self, key: str, place: Place, sources: Sources, tensor: Tensor) -> None:
        known = self.trace.places.setdefault(key, place)
        known.shape = tuple(tensor.shape[1:])
        for source in sources - {key}:
            self.trace.edges[source, key] = None

    def _count(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if operation in self._flops:
            flops = self._flops[operation](*args, **kwargs, out_val=result)
            place = self.trace.places.setdefault(self._place, Place(self._place))
            place.multiply_adds += flops // 2

    def _sources_of(self, values: Any) -> Sources:
        known = (self._sources.get(id(each)) for each in _tensors(values))
        return frozenset(name for entry in known if entry is not None for name in entry[1])


def _tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors of nested lists, tuples and dicts, and the vectors of a memory."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _tensors(value)
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
    elif isinstance(vectors := getattr(values, "vectors", None), Tensor):
        yield vectors
