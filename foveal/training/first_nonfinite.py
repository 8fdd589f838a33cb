"""A search for the module that first produced a non-finite number."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from torch import Tensor, nn

from foveal.core.result import ObjectiveOutput


class Location(NamedTuple):
    """Where a number that is not finite appears."""

    order: int
    """0 in a forward pass, 1 in a gradient, 2 in none of these."""
    name: str


def find_first_nonfinite(
    model: nn.Module,
    gradients: Mapping[str, Tensor | None],
    forward_all: Callable[[], Iterable[ObjectiveOutput]],
) -> Location:
    """Return where the first non-finite number appears.

    `forward_all` repeats the forward passes with the same noise. The result names the first module whose
    output is not finite, else the first term of the loss that is not finite, else the first parameter whose
    gradient is not finite.
    """
    locations: list[str] = []

    def watch(path: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if not locations and not all(map(_finite, _tensors(output))):
                locations.append(f"{path or 'model'} ({type(module).__name__})")

        return hook

    handles = [module.register_forward_hook(watch(path)) for path, module in model.named_modules()]
    try:
        for result in forward_all():
            locations += [
                "the loss" if name == "loss" else f"the loss term {name}"
                for name, term in result.terms.items()
                if not _finite(term.sum)
            ]
            if locations:
                return Location(0, locations[0])
    finally:
        for handle in handles:
            handle.remove()
    for name, gradient in gradients.items():
        if gradient is not None and not _finite(gradient):
            return Location(1, f"gradient of {name}")
    return Location(2, "the gradient's norm, which overflows")


def earliest(locations: Iterable[Location]) -> str:
    """Return the name of the earliest of the locations that the ranks have seen."""
    return min(locations, key=lambda location: location.order).name


def _finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())


def _tensors(output: Any) -> Iterator[Tensor]:
    """Yield all tensors in a nested output."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict):
        for part in output.values():
            yield from _tensors(part)
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from _tensors(part)
    elif is_dataclass(output):
        for field in fields(output):
            yield from _tensors(getattr(output, field.name))
