"""The recurrent attention model (Mnih et al. 2014): it sees small parts of an image, and chooses which."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.module_facts import LayerGroups
from foveal.models.stack import MixerFactory, make_stack
from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor


class GlimpseOutput(NamedTuple):
    """What a model of glimpses did; T glimpses, of which the first is of the centre."""

    locations: Float[Tensor, "B T 2"]
    """Down and across, -1 to 1."""
    location_log_probs: Float[Tensor, "B U"]
    """`-|l_t - mean_t|^2 / (2 sigma^2)` of the U = T - 1 places that were drawn: their log-probability
    but for a constant."""
    baselines: Float[Tensor, "B U"]
    """The baseline: which reward was to be expected when each of them was drawn."""
    logits: Float[Tensor, "B T C"]
    """The logits after each glimpse; the last are the answer."""


class GlimpseNetwork(nn.Module):
    """What and where, `g = relu(W_1 relu(W_r rho(x, l)) + W_2 relu(W_l l))` (Mnih et al. 2014, section 4)."""

    def __init__(self, pixels: int, width: int):
        super().__init__()
        self.see = nn.Linear(pixels, width)
        self.place = nn.Linear(2, width // 2)
        self.what = nn.Linear(width, width)
        self.where = nn.Linear(width // 2, width)

    def forward(self, pixels: Float[Tensor, "B P"], place: Float[Tensor, "B 2"]) -> Float[Tensor, "B D"]:
        return (self.what(self.see(pixels).relu()) + self.where(self.place(place).relu())).relu()


class RecurrentAttentionModel(nn.Module):
    """`h_t = f(h_(t-1), g_t)`; the next place is drawn about `tanh(W_l h_t)`, and the answer is `W_a h_T`.

    f is any stack of mixers. The policy and the baseline read a state that they do not change: neither's
    gradient goes into f (Mnih et al. 2014, section 3.2). In evaluation nothing is drawn: the places are the
    policy's means.
    """

    not_hidden = ("projection",)

    def __init__(
        self,
        config: ModelConfig,
        channels: int,
        classes: int,
        *,
        count: int,
        side: int,
        scales: int,
        std: float,
    ):
        super().__init__()
        self.count, self.side, self.scales, self.std = count, side, scales, std
        self.glimpse = GlimpseNetwork(scales * channels * side**2, config.width)
        self.core = make_stack(MixerFactory(config), config.width, count)
        self.policy = nn.Linear(config.width, 2)
        self.baseline = nn.Linear(config.width, 1)
        self.projection = nn.Linear(config.width, classes)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters by their depth: the blocks of the core."""
        return self.core.layer_groups()

    def forward(self, images: Float[Tensor, "B C H W"]) -> GlimpseOutput:
        place = images.new_zeros(len(images), 2)
        state, places, chosen, expected, answers = None, [place], [], [], []
        for number in range(self.count):
            seen = glimpse_sensor(images, place, self.side, self.scales).flatten(1)
            features, state, _ = self.core(self.glimpse(seen, place)[:, None], state)
            answers.append(self.projection(features[:, 0]))
            if number + 1 < self.count:
                known = features[:, 0].detach()
                mean = self.policy(known).float().tanh()
                drawn = mean.detach()
                if self.training:
                    drawn = drawn + self.std * torch.randn_like(drawn)
                chosen.append(-(drawn - mean).square().sum(1) / (2 * self.std**2))
                expected.append(self.baseline(known)[:, 0])
                place = drawn.clamp(-1, 1)
                places.append(place)
        none = images.new_zeros(len(images), 0)
        return GlimpseOutput(
            torch.stack(places, 1),
            torch.stack(chosen, 1) if chosen else none,
            torch.stack(expected, 1) if expected else none,
            torch.stack(answers, 1),
        )
