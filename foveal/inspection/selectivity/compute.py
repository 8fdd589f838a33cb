"""How long the states of a linear recurrence keep what they have read, and which tokens they read.

A state with `h_t = exp(delta A) h_(t-1) + ...` is half of what it was after

    ln 2 / (-delta Re A)        steps

(S5: Smith et al. 2023; Mamba: Gu and Dao 2023, where delta depends on the token; RWKV: Peng et al. 2023, with
`exp(-exp(decay))` in place of `exp(delta A)`). A large delta writes the token and forgets what was before; a
delta near 0 leaves the state as it is. A channel is selective if its delta varies: the coefficient of
variation over tokens is 0 for a time-invariant model.
"""

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.inspection.capture.capture import capture
from foveal.inspection.chosen_input import ChosenInput


@runtime_checkable
class DecayingMixer(Protocol):
    """A mixer whose states decay by a known factor in each step."""

    def half_lives(self, step_sizes: Float[Tensor, " E"] | None = None) -> Float[Tensor, "E N"]:
        """Return the half-life of each state in steps; `step_sizes` are needed if they depend on the
        input."""


@runtime_checkable
class SelectiveMixer(DecayingMixer, Protocol):
    """A mixer whose step sizes depend on the input."""

    def constant_steps(self, step_sizes: Float[Tensor, " E"]) -> AbstractContextManager[None]:
        """Let every step have these sizes meanwhile, whatever the input."""


class LayerMemory(NamedTuple):
    """The half-lives of one mixer, and its step sizes for the tokens of an input."""

    path: str
    half_lives: Float[np.ndarray, "E N"]
    step_sizes: Float[np.ndarray, "T E"] | None
    """None if the steps do not depend on the input."""

    def variation(self) -> Float[np.ndarray, " E"]:
        """Return the coefficient of variation of each channel's step sizes over the tokens."""
        steps = self.step_sizes
        assert steps is not None
        variation: Float[np.ndarray, " E"] = steps.std(0) / steps.mean(0)
        return variation


def decaying_mixers(model: nn.Module) -> dict[str, DecayingMixer]:
    """Return the mixers with known decays by path."""
    return {path: module for path, module in model.named_modules() if isinstance(module, DecayingMixer)}


def layer_memories(model: nn.Module, chosen: ChosenInput) -> list[LayerMemory]:
    """Return the half-lives of each mixer; where step sizes depend on the input, at their mean."""
    mixers, steps = decaying_mixers(model), dict[str, Tensor]()
    sites = {path: f"{path}/delta" for path, mixer in mixers.items() if isinstance(mixer, SelectiveMixer)}
    if sites:
        with torch.inference_mode(), capture(model, *sites.values()) as record:
            chosen.log_probabilities()
        steps = {path: record[site][0][0] for path, site in sites.items()}
    memories = []
    for path, mixer in mixers.items():
        own = steps.get(path)
        with torch.inference_mode():
            half_lives = mixer.half_lives(None if own is None else own.mean(0))
        sizes = None if own is None else own.double().cpu().numpy()
        memories.append(LayerMemory(path, half_lives.double().cpu().numpy(), sizes))
    return memories
