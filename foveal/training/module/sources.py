"""What users give as batches: loaders, lists, other iterables, and functions."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.training.module.batches import BatchOptions, FunctionBatches, HeldOutBatches, IterableBatches


def train_batches(
    source: Any, per_epoch: int | None, options: BatchOptions
) -> FunctionBatches | IterableBatches:
    """Return the training batches of any source.

    Raises: UserError: the source has no batches, or is of single examples.
    """
    if _is_function(source) and count_arguments(source) == 2:
        count = per_epoch or _length(source)
        if not count:
            raise UserError(
                "train is a function of (epoch, index), which has no length: give batches_per_epoch, too"
            )
        return FunctionBatches(source, count, options)
    iterable = _open_iterable("train", source)
    if isinstance(iterable, Sequence):
        if not iterable:
            raise UserError("train is empty: it has no batch")
        count = per_epoch or len(iterable)
        return FunctionBatches(lambda epoch, index: iterable[index % len(iterable)], count, options)
    return IterableBatches(iterable, options, per_epoch or _length(iterable))


def held_out_batches(source: Any, options: BatchOptions) -> HeldOutBatches:
    """Return the batches of any source for evaluation. Those of an iterator are kept in memory, and those of
    a source without a length are counted.

    Raises: UserError: the source has no batches, or is of single examples.
    """
    iterable = _open_iterable("valid", source)
    if isinstance(iterable, Iterator):
        iterable = list(iterable)
    length = _length(iterable)
    if length is None:
        options.log("counting the batches of valid, which has no length")
        length = sum(1 for _ in iterable)
    if length == 0:
        raise UserError("valid is empty: it gave no batch; leave it out, or give batches")
    return HeldOutBatches(iterable, length, options)


@dataclass(frozen=True)
class _Restarted:
    """The iterators that a function makes, one for each epoch."""

    function: Callable[[], Iterable[Any]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.function())


def _open_iterable(name: str, source: Any) -> Iterable[Any]:
    """Return a source as an iterable of batches. A function without parameters is called for it.

    Raises: UserError: the source is no iterable of batches.
    """
    if _is_function(source):
        if count_arguments(source) != 0:
            kinds = "(epoch, index) or of nothing" if name == "train" else "nothing"
            raise UserError(f"{name} is a function of other parameters than {kinds}: change its parameters")
        made = source()
        return _Restarted(source) if isinstance(made, Iterator) else _open_iterable(name, made)
    arrays = source if isinstance(source, tuple) else (source,)
    if all(isinstance(part, (Tensor, np.ndarray)) for part in arrays):
        raise UserError(
            f"{name} is of tensors, not of batches: give "
            f"DataLoader(TensorDataset(inputs, targets), batch_size=32{', shuffle=True' * (name == 'train')})"
        )
    if isinstance(source, torch.utils.data.Dataset) and not hasattr(source, "__iter__"):
        raise UserError(
            f"{name} is a Dataset of single examples: give "
            f"DataLoader(dataset, batch_size=32{', shuffle=True' * (name == 'train')})"
        )
    if isinstance(source, (str, bytes, Mapping)) or not hasattr(source, "__iter__"):
        raise UserError(
            f"{name}: expected batches (a DataLoader, a list, any iterable), not {type(source).__name__}"
        )
    iterable: Iterable[Any] = source
    return iterable


def _is_function(source: Any) -> bool:
    """Return whether a source makes batches when it is called."""
    return callable(source) and not hasattr(source, "__iter__") and not hasattr(source, "__getitem__")


def _length(source: Any) -> int | None:
    """Return the length of a source; None if it has none."""
    try:
        return len(source)
    except TypeError:
        return None


def count_arguments(function: Callable[..., Any]) -> int:
    """Return the number of a function's parameters without defaults."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)
