"""`foveal.layers`: every layer by name, and the examples in the docstrings."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from foveal import layers
from tests.support.docstring_examples import examples, failures, names_for_the_type_checker

NAMES = {name: layers._MODULES[name] for name in sorted(layers._MODULES)}
BASES = {"ContiguousGroupNorm", "GatedMLP", "MoELayer", "MultiHeadAttention", "PatchCodebook", "StackEncoder"}
"""Base classes, and a layer that `replace_batch_norm` puts in."""


def public_modules() -> Iterator[tuple[str, str]]:
    """Yield the name and the file of each public `nn.Module` of layers, encoders and heads."""
    for package in ("foveal.layers", "foveal.encoders", "foveal.heads"):
        path = importlib.import_module(package).__path__
        for file in pkgutil.walk_packages(path, f"{package}."):
            for name, value in vars(importlib.import_module(file.name)).items():
                if inspect.isclass(value) and issubclass(value, nn.Module) and value.__module__ == file.name:
                    yield from [] if name.startswith("_") else [(name, file.name)]


def test_every_layer_has_a_name() -> None:
    missing = [name for name, module in public_modules() if name not in BASES and NAMES.get(name) != module]
    assert missing == []
    assert len(NAMES) > 80


def test_names_for_the_type_checker_are_those_that_are_imported() -> None:
    assert names_for_the_type_checker(layers) == NAMES
    assert dir(layers) == list(NAMES)


@pytest.mark.parametrize("module", sorted(set(NAMES.values())))
def test_examples(module: str) -> None:
    torch.manual_seed(0)
    for name in (name for name, place in NAMES.items() if place == module):
        wanted = examples(getattr(layers, name))
        assert wanted, name
        assert not failures(name, wanted, {"torch": torch, "layers": layers})


def test_an_example_can_fail() -> None:
    class Wrong:
        """Two numbers.

        >>> tuple(torch.zeros(2).shape)
        (3,)
        """

    assert "Expected:\n    (3,)\nGot:\n    (2,)" in failures("wrong", examples(Wrong), {"torch": torch})


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"module 'foveal\.layers' has no attribute 'LSTN'"):
        layers.LSTN  # noqa: B018


def test_a_name_is_imported_when_it_is_used() -> None:
    code = "import sys, foveal.layers, foveal.metrics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
