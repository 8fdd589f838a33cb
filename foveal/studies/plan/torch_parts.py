"""Parts of torch for steps on fake tensors and without other processes. torch documents them, but in private
modules."""

from typing import Any

import torch
from torch import Tensor

from foveal.core.errors import UserError

try:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._pytree import tree_leaves
except ImportError:
    raise UserError(
        f"torch {torch.__version__} lacks a part that foveal plan needs: pip install 'torch==2.13.*'"
    ) from None

READ_OF_A_NUMBER: Any = torch.ops.aten._local_scalar_dense.default
"""The operation by which a number of a tensor is read."""

FAKE_TENSOR: type = FakeTensor
"""The class of tensors that have shapes alone."""
LSTM_OF_CPU = "aten::mkldnn_rnn_layer"
"""The operation of torch's LSTM on CPUs."""


def fake_tensor_mode() -> FakeTensorMode:
    """Return a context in which new tensors have shapes alone."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def is_fake(value: Any) -> bool:
    """Return whether a value is a tensor that has a shape alone."""
    return isinstance(value, FakeTensor)


def fake_store() -> Any:
    """Return the store of a fake process group."""
    return FakeStore()


def tensors_in(values: Any) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]
