"""Parts of torch that show every operation of a model. torch documents them, but in private modules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from foveal.core.errors import UserError
from foveal.ops.jit.dispatch import reference_only

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:
    TorchDispatchMode = object  # type: ignore[assignment,misc]


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context in which `__torch_dispatch__` is called for every operation, also those of a backward pass.

    Raises: UserError: this torch has no such context.
    """

    def __init__(self) -> None:
        if OperationMode.__bases__ == (object,):
            raise _missing("torch.utils._python_dispatch.TorchDispatchMode")
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else the first operation imports torch._dynamo, which takes longer than most views.
        return False


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Return a context in which torch's encoder layers and attention call their modules and usual operations.

    Outside, in evaluation mode and without gradients, one operation may compute a whole layer.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def named_arguments(operation: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of an operation by name, with the defaults of those that are not given.

    Raises: UserError: this torch does not name them.
    """
    try:
        signature = operation._schema.arguments
        defaults = {part.name: part.default_value for part in signature if part.has_default_value()}
        names = [part.name for part in signature]
    except AttributeError:
        raise _missing("OpOverload._schema") from None
    return defaults | dict(zip(names, arguments, strict=False)) | dict(named)


def flop_formulas() -> Mapping[Any, Callable[..., int]]:
    """Return the function that counts an operation's floating-point operations, by operation.

    Raises: UserError: this torch has no such functions.
    """
    try:
        from torch.utils.flop_counter import flop_registry
    except ImportError:
        raise _missing("torch.utils.flop_counter.flop_registry") from None
    # torch has no formulas for its kernel of CPUs, which computes the same products.
    aten = torch.ops.aten
    of_cpu = {
        aten._scaled_dot_product_flash_attention_for_cpu: aten._scaled_dot_product_flash_attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: (
            aten._scaled_dot_product_flash_attention_backward
        ),
    }
    return {own: flop_registry[other] for own, other in of_cpu.items()} | flop_registry


COMPUTES_ALL_BY_REFERENCE = ("moe",)
"""Operations whose reference computes more than is needed: every expert for every vector."""


class FlopCounter(OperationMode):  # type: ignore[no-untyped-call]
    """Counts the floating-point operations of a forward pass: 2 for each multiply-add of products,
    convolutions and attention, and those of scans.

    Products are counted from their shapes, on the reference paths, whose products are operations of torch.
    The recurrence of a scan is no product: a mixer with one says its operations at each position
    (`scan_flops`). Other elementwise operations are not counted, as is usual.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.flops = 0
        self._scans = [module for module in model.modules() if hasattr(module, "scan_flops")]
        self._formulas = flop_formulas()
        self._contexts = ExitStack()

    def __enter__(self) -> Any:
        self._contexts.enter_context(reference_only(besides=COMPUTES_ALL_BY_REFERENCE))
        for module in self._scans:
            self._contexts.callback(module.register_forward_hook(self._add_scan).remove)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        self._contexts.close()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _add_scan(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        rows, positions = inputs[0].shape[:2]
        self.flops += rows * positions * module.scan_flops

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        if (formula := self._formulas.get(func.overloadpacket)) is not None:
            self.flops += formula(*args, **named, out_val=result)
        return result


def _missing(part: str) -> UserError:
    lack = f"torch {torch.__version__} has no {part}, which this view needs"
    return UserError(f"{lack}: pip install 'torch==2.13.*'")
