"""Names of activations, and checks of settings and tensors, for all readers of model folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from foveal.config import ConfigError, ModelConfig
from foveal.core.errors import UserError
from foveal.interop.huggingface.files import HF_CONFIG_FILE
from foveal.models.mixer_settings import resolve_mixer_settings

ACTIVATIONS = {
    "gelu_new": "gelu-tanh",
    "gelu": "gelu",
    "relu": "relu",
    "gelu_pytorch_tanh": "gelu-tanh",
}
FLOAT_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def validate_model_config(tables: dict[str, Any], path: Path) -> ModelConfig:
    """Return a config of the settings in the file `path`.

    Raises: UserError: Foveal has no model with these settings.
    """
    try:
        return resolve_mixer_settings(ModelConfig.model_validate(tables))
    except ConfigError as error:
        raise UserError(f"{path}: {error}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        raise UserError(f"{path}: model.{key}={problem['input']}: {problem['msg']}") from None


def check_tensors(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Check the names, shapes and dtypes of the tensors in a folder.

    Raises: UserError: names, shapes or dtypes differ from the expected ones.
    """
    problems = [f"no {name}" for name in expected if name not in tensors]
    problems += [f"{name} is not in such a model" for name in tensors if name not in expected]
    problems += [
        f"{name} is {list(tensors[name].shape)}, not {list(tensor.shape)}"
        for name, tensor in expected.items()
        if name in tensors and tensors[name].shape != tensor.shape
    ]
    problems += [
        f"{name} is {str(tensor.dtype).removeprefix('torch.')}, and quantized weights can't be imported"
        for name, tensor in tensors.items()
        if tensor.dtype not in FLOAT_DTYPES
    ]
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise UserError(
            f"{folder}: its tensors do not fit its {HF_CONFIG_FILE}: {'; '.join(problems[:3])}{more}"
        )
