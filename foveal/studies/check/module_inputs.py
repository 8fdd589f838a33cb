"""What a module of the user's own takes: inputs that fit it, and what its outputs are."""

from collections.abc import Iterator
from inspect import Parameter, signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from foveal.core.errors import FAILURES, UserError, describe_failure
from foveal.studies.check.example_sources import LONGEST, ROWS, SIDE

STATES = ("state", "hx", "hidden", "h", "h0", "h_0", "cache")
"""The names of arguments that are taken as a state from which a module goes on."""
LENGTHS = ("lengths",)
"""The names of arguments that are taken as the lengths of rows with padding."""
FORMS = "tokens:NUMBER, vectors:WIDTH, vector:WIDTH, signal:CHANNELS or image:CHANNELSxHEIGHTxWIDTH"


class ModuleInput(NamedTuple):
    """The inputs of a module under check."""

    kind: str
    """tokens (B, T), vectors (B, T, D), a vector (B, D), a signal (B, C, T) or an image (B, C, H, W)."""
    sizes: tuple[int, ...]

    @property
    def has_places(self) -> bool:
        """Return whether the second axis is a sequence."""
        return self.kind in ("tokens", "vectors")

    def make(self) -> Tensor:
        """Return a batch of inputs, with numbers in float64."""
        generator = torch.Generator().manual_seed(0)
        if self.kind == "tokens":
            return torch.randint(self.sizes[0], (ROWS, LONGEST), generator=generator)
        shapes = {
            "vectors": (LONGEST, *self.sizes),
            "vector": self.sizes,
            "signal": (*self.sizes, SIDE),
            "image": self.sizes,
        }
        return torch.randn(ROWS, *shapes[self.kind], dtype=torch.float64, generator=generator)

    def __str__(self) -> str:
        return f"{self.kind}:{'x'.join(map(str, self.sizes))}"


def read_input(text: str) -> ModuleInput:
    """Read the inputs of a module as the user writes them, such as `tokens:100`.

    Raises: UserError: the text has another form.
    """
    kind, _, sizes = text.partition(":")
    numbers = sizes.split("x")
    count = {"tokens": 1, "vectors": 1, "vector": 1, "signal": 1, "image": 3}.get(kind)
    if count != len(numbers) or not all(each.isdecimal() and int(each) for each in numbers):
        raise UserError(f"--input {text}: expected {FORMS}")
    return ModuleInput(kind, tuple(map(int, numbers)))


def find_input(module: nn.Module, name: str, given: ModuleInput | None) -> ModuleInput:
    """Return inputs that a module takes: those that are given, or else by its first layer with weights.

    Raises: UserError: it fails on them, takes none of those that are tried, or returns no output.
    """
    problem, wrong_output = "it has no layer with weights", None
    for guess in _guesses(module) if given is None else [given]:
        try:
            outputs(module, guess.make().to(_dtype_for(module, guess)))
        except UserError as error:
            wrong_output = error
        except FAILURES as error:
            problem = describe_failure(error)
        else:
            return guess
    if wrong_output is not None:
        raise UserError(f"{name}: {wrong_output}")
    if given is not None:
        raise UserError(f"{name}: forward fails on --input {given}: {problem}")
    raise UserError(f"{name}: unknown what forward takes ({problem}): give --input {FORMS}")


def outputs(module: Any, inputs: Tensor, *more: Any, **named: Any) -> tuple[Tensor, Any]:
    """Return the output of a module with the rows of the batch as its first axis, and the state after it.

    Raises: UserError: it returns no such output.
    """
    result = module(inputs, *more, **named)
    state = None
    if isinstance(result, (tuple, list)) and result:
        state = result[1] if len(result) > 1 else None
        result = result[0]
    if isinstance(result, dict):
        if "logits" not in result:
            raise UserError(
                "forward returns a dict without 'logits': return a tensor, or check a module around it that "
                "does"
            )
        result = result["logits"]
    result = getattr(result, "logits", result)
    if not isinstance(result, Tensor) or not result.dim() or result.shape[0] != len(inputs):
        shape = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise UserError(
            f"forward returns {shape}, not a tensor with the {len(inputs)} rows of the batch first"
        )
    return result, state


def argument(module: nn.Module, names: tuple[str, ...]) -> str:
    """Return the argument of `forward`, besides the first, that has one of some names; empty if none has."""
    _, *more = signature(module.forward).parameters or [""]
    return next((name for name in more if name in names), "")


def check_arguments(module: nn.Module, name: str) -> None:
    """Check that a module can be called with one input.

    Raises: UserError: it needs others.
    """
    _, *more = signature(module.forward).parameters.values() or [None]
    kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    needed = [
        each.name
        for each in more
        if each is not None and each.default is Parameter.empty and each.kind not in kinds
    ]
    if needed:
        raise UserError(
            f"{name}: forward needs {', '.join(needed)} beside its input: give them defaults, or check a "
            "module around it that takes one input"
        )


def _guesses(module: nn.Module) -> Iterator[ModuleInput]:
    for layer in module.modules():
        if isinstance(layer, nn.Embedding):
            yield ModuleInput("tokens", (layer.num_embeddings,))
        elif isinstance(layer, nn.Conv2d):
            yield ModuleInput("image", (layer.in_channels, SIDE, SIDE))
        elif isinstance(layer, nn.Conv1d):
            yield ModuleInput("signal", (layer.in_channels,))
            yield ModuleInput("vectors", (layer.in_channels,))
        elif isinstance(layer, nn.RNNBase):
            yield ModuleInput("vectors", (layer.input_size,))
        elif isinstance(layer, nn.Linear):
            yield ModuleInput("vectors", (layer.in_features,))
            yield ModuleInput("vector", (layer.in_features,))
        elif any(True for _ in layer.parameters(recurse=False)):
            for weight in layer.parameters(recurse=False):
                yield ModuleInput("vectors", (weight.shape[-1],))
        else:
            continue
        return


def _dtype_for(module: nn.Module, guess: ModuleInput) -> torch.dtype:
    if guess.kind == "tokens":
        return torch.long
    return next((weight.dtype for weight in module.parameters()), torch.float32)
