"""The bytes of a safetensors file without a copy of its tensors: a header, then a view of each tensor.

They are those that the library `safetensors` writes, which holds the interpreter while it copies.
"""

import json
from collections.abc import Mapping

import torch
from torch import Tensor

DTYPES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.int16: "I16",
    torch.uint16: "U16",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int32: "I32",
    torch.uint32: "U32",
    torch.float32: "F32",
    torch.complex64: "C64",
    torch.float64: "F64",
    torch.int64: "I64",
    torch.uint64: "U64",
}
"""The name of each dtype. In a file, tensors of later ones come first, so that all lie at multiples of their
size."""
RANKS = {dtype: rank for rank, dtype in enumerate(DTYPES)}
ALIGNMENT = 8
"""The length of a header is a multiple of this."""


def file_order(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names of tensors in the order in which a file has them."""
    return sorted(tensors, key=lambda name: (-RANKS[tensors[name].dtype], name))


def safetensors_header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Return the beginning of a file, of which only the shapes and dtypes of the tensors are read."""
    entries: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name in file_order(tensors):
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        entries[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": [*tensor.shape],
            "data_offsets": [start, end],
        }
    content = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    content += b" " * (-len(content) % ALIGNMENT)
    return len(content).to_bytes(8, "little") + content


def tensor_bytes(tensor: Tensor) -> memoryview:
    """Return the bytes of a tensor: a view of those of a contiguous one on a CPU."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if len(flat) else memoryview(b"")
