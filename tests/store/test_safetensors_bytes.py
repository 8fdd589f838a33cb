"""The bytes of safetensors files are those of the library."""

import safetensors.torch
import torch

from foveal.store.safetensors_bytes import DTYPES, file_order, safetensors_header, tensor_bytes


def test_files_are_those_of_the_library() -> None:
    """All dtypes, an empty tensor, one without axes, one that is not contiguous, and names to be escaped."""
    tensors = {str(dtype): torch.arange(6).view(2, 3).to(dtype) for dtype in DTYPES}
    tensors |= {"b": torch.tensor(1.5), "a": torch.zeros(0, 4), 'é "\\/\n\x7f': torch.ones(3)}
    tensors |= {"view": torch.arange(6.0).view(2, 3).T.contiguous()}
    metadata = {"foveal": '{"sha256":"0","text":"é\\u00e9\n"}'}
    contents = [bytes(tensor_bytes(tensors[name])) for name in file_order(tensors)]
    written = safetensors_header(tensors, metadata) + b"".join(contents)
    assert written == safetensors.torch.save(tensors, metadata)


def test_a_view_is_written_row_by_row() -> None:
    assert bytes(tensor_bytes(torch.arange(6, dtype=torch.uint8).view(2, 3).T)) == bytes([0, 3, 1, 4, 2, 5])
