"""Which tokens go to which expert, and whether the form of a token decides it.

With n(e, c) tokens of class c sent to expert e, and p the shares of all tokens that were sent,

    PMI(e, c) = log2 p(e, c) / (p(e) p(c))        I = sum_(e, c) p(e, c) PMI(e, c)

in bits (Church and Hanks 1990). I is never below 0, and above it by chance, so the same is computed with the
classes shuffled. The load of experts is even if the coefficient of variation of their counts is 0 (Shazeer et
al. 2017, equation 6). exp of the entropy of the shares is the effective number of experts.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from foveal.inspection.capture.capture import capture
from foveal.inspection.chosen_input import ChosenInput
from foveal.layers.blocks.moe import Experts, MoELayer

CLASSES = ("word start", "in a word", "capital", "digit", "punctuation", "space", "line break", "special")
COLLAPSED = 1.5
"""Times the active experts: with fewer effective experts, a layer has collapsed."""


class Routing(NamedTuple):
    """The gates of one layer, and the tokens that it has read."""

    layer: str
    gates: Float[np.ndarray, "T E"]
    """0 where a token is not sent."""
    tokens: tuple[str, ...]


class Load(NamedTuple):
    """How a layer spreads tokens over its experts."""

    counts: Int[np.ndarray, " E"]
    tokens: int
    active: int
    """Experts that each token is to be sent to."""

    @property
    def dropped(self) -> int:
        """Missing assignments: `tokens` times `active`, less those that were made."""
        return self.tokens * self.active - int(self.counts.sum())

    @property
    def fractions(self) -> Float[np.ndarray, " E"]:
        return self.counts / max(1, self.counts.sum())

    @property
    def variation(self) -> float:
        """The coefficient of variation of the counts: 0 if the load is even."""
        return float(self.counts.std() / max(1e-300, self.counts.mean()))

    @property
    def effective(self) -> float:
        """The effective number of experts."""
        used = self.fractions[self.fractions > 0]
        return float(np.exp(-(used * np.log(used)).sum()))

    @property
    def collapsed(self) -> bool:
        """Return whether hardly more experts are used than each token needs."""
        return len(self.counts) > 2 * self.active and self.effective < COLLAPSED * self.active


def expert_layers(model: nn.Module) -> list[str]:
    """Return the paths of the layers with experts."""
    return [path for path, module in model.named_modules() if isinstance(module, MoELayer)]


def routing(model: nn.Module, chosen: ChosenInput) -> list[Routing]:
    """Return the gates of each layer for an input."""
    with torch.inference_mode(), capture(model, "*/gates") as record:
        chosen.log_probabilities()
    routes = []
    for name, values in record.items():
        gates = values[0][0].double().cpu().numpy()
        routes.append(Routing(name.rpartition("/")[0], gates, chosen.position_names(len(gates))))
    return routes


def load(gates: Float[np.ndarray, "T E"], active: int) -> Load:
    """Return the load of each expert."""
    return Load((gates > 0).sum(0), len(gates), active)


def token_classes(tokens: Sequence[str]) -> list[str]:
    """Return the class of each token by its form."""
    classes, starts = list[str](), True
    for token in tokens:
        core = token.strip()
        if token in ("<start>", "<stop>", "<mask>"):
            classes.append("special")
        elif not core:
            classes.append("line break" if "\n" in token else "space")
        elif core[0].isdigit():
            classes.append("digit")
        elif not core[0].isalpha():
            classes.append("punctuation")
        elif core[0].isupper():
            classes.append("capital")
        else:
            classes.append("word start" if starts or token[0].isspace() else "in a word")
        starts = not core or token[-1].isspace() or not core[-1].isalnum()
    return classes


class ClassTable(NamedTuple):
    """How often tokens of each class go to each expert."""

    classes: tuple[str, ...]
    counts: Int[np.ndarray, "E C"]

    @property
    def pointwise(self) -> Float[np.ndarray, "E C"]:
        """The pointwise mutual information in bits; NaN where no token was sent."""
        joint = self.counts / max(1, self.counts.sum())
        expected = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            values: Float[np.ndarray, "E C"] = np.where(joint > 0, np.log2(joint / expected), math.nan)
        return values

    @property
    def information(self) -> float:
        """The mutual information of expert and class in bits."""
        joint = self.counts / max(1, self.counts.sum())
        return float(np.nansum(joint * self.pointwise))


def class_table(gates: Float[np.ndarray, "T E"], classes: Sequence[str]) -> ClassTable:
    """Return the table of the classes that occur."""
    names = tuple(name for name in CLASSES if name in classes)
    sent, labels = gates > 0, np.array(classes)
    return ClassTable(names, np.stack([sent[labels == name].sum(0) for name in names], 1))


def shuffled(classes: Sequence[str], seed: int = 0) -> list[str]:
    """Return the classes in a random order, the same for a seed."""
    order = np.random.default_rng(seed).permutation(len(classes))
    return [classes[place] for place in order]


@contextmanager
def without_expert(layer: Any, expert: int) -> Iterator[None]:
    """Let an expert give zeros meanwhile. Its gate is not shared out among the others."""
    assert isinstance(layer, Experts)
    weight = layer.weight_contract
    kept = weight[expert].detach().clone()
    with torch.no_grad():
        weight[expert] = 0.0
    try:
        yield
    finally:
        with torch.no_grad():
            weight[expert] = kept
