"""The recurrent attention model (Mnih et al. 2014), which sees small parts of an image, and chooses their
locations."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.module_facts import LayerGroups
from foveal.models.stack import MixerFactory, make_stack
from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor


class GlimpseOutput(NamedTuple):
    """The output of the model: T glimpses, of which the first is at the center."""

    locations: Float[Tensor, "B T 2"]
    """Vertical and horizontal, from -1 to 1."""
    location_log_probs: Float[Tensor, "B U"]
    """The log-probabilities of the U = T - 1 sampled locations, up to a constant: `-|l_t - mean_t|^2 / (2
    sigma^2)`."""
    baselines: Float[Tensor, "B U"]
    """The baseline: an estimate of the expected reward, at each sampled location."""
    logits: Float[Tensor, "B T C"]
    """The logits after each glimpse. The last ones are the prediction."""


class GlimpseNetwork(nn.Module):
    """The glimpse network, `g = relu(W_1 relu(W_r rho(x, l)) + W_2 relu(W_l l))` (Mnih et al. 2014, section
    4)."""

    def __init__(self, pixels: int, width: int):
        super().__init__()
        self.see = nn.Linear(pixels, width)
        self.place = nn.Linear(2, width // 2)
        self.what = nn.Linear(width, width)
        self.where = nn.Linear(width // 2, width)

    def forward(self, pixels: Float[Tensor, "B P"], place: Float[Tensor, "B 2"]) -> Float[Tensor, "B D"]:
        return (self.what(self.see(pixels).relu()) + self.where(self.place(place).relu())).relu()


class RecurrentAttentionModel(nn.Module):
    """`h_t = f(h_(t-1), g_t)`. The next location is sampled around `tanh(W_l h_t)`. The logits are `W_a h_T`.

    f is any stack of mixers. The gradients of the policy and the baseline do not flow into f (Mnih et al.
    2014, section 3.2). In evaluation, nothing is sampled: each location is the mean of the policy.
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
        """Return the parameters grouped by depth: the blocks of the recurrent stack."""
        return self.core.layer_groups()

    def forward(self, images: Float[Tensor, "B C H W"]) -> GlimpseOutput:
        location = images.new_zeros(len(images), 2)
        state, locations, log_probs, baselines, logits = None, [location], [], [], []
        for index in range(self.count):
            pixels = glimpse_sensor(images, location, self.side, self.scales).flatten(1)
            features, state, _ = self.core(self.glimpse(pixels, location)[:, None], state)
            logits.append(self.projection(features[:, 0]))
            if index + 1 < self.count:
                detached = features[:, 0].detach()
                mean = self.policy(detached).float().tanh()
                sample = mean.detach()
                if self.training:
                    sample = sample + self.std * torch.randn_like(sample)
                log_probs.append(-(sample - mean).square().sum(1) / (2 * self.std**2))
                baselines.append(self.baseline(detached)[:, 0])
                location = sample.clamp(-1, 1)
                locations.append(location)
        empty = images.new_zeros(len(images), 0)
        return GlimpseOutput(
            torch.stack(locations, 1),
            torch.stack(log_probs, 1) if log_probs else empty,
            torch.stack(baselines, 1) if baselines else empty,
            torch.stack(logits, 1),
        )
