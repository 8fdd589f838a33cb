"""Parts of torch that show every operation of a model. torch documents them, but in private modules."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from foveal.core.errors import UserError

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


def _missing(part: str) -> UserError:
    lack = f"torch {torch.__version__} has no {part}, which this view needs"
    return UserError(f"{lack}: pip install 'torch==2.13.*'")
