"""DRAW (Gregor et al. 2015): a model draws an image in steps. Each step adds a patch to a canvas."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.module_facts import LayerGroups, merge_layer_groups
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.models.stack import MixerFactory, make_stack
from foveal.tasks.draw.gaussian_filters import filter_grid, read_patch, write_patch

MIN_BRIGHTNESS = 0.01
"""Smallest brightness of a pixel of the first canvas. The largest is 1 minus this."""


class DrawOutput(NamedTuple):
    """The output of the model. Canvases are log-odds: the brightness of a pixel is `sigmoid(canvas)`."""

    canvases: Float[Tensor, "B T H W"]
    """The canvas after each step."""
    step_kl: Float[Tensor, "B T"]
    """KL(Q || N(0, 1)) of each step's latent vector: the information about the image. 0 without an image."""
    write_windows: Float[Tensor, "B T 4"]
    """The window of each step: the positions of the first and last filter, vertical and horizontal, in
    pixels."""


class DrawModel(nn.Module):
    """DRAW for an image x, in T steps that add to the canvas c_(t-1) (section 2.1, equations 3 to 8):

        x^ = x - sigmoid(c_(t-1))                 r_t = [read(x), read(x^)]
        h_t = RNN_enc(h_(t-1), [r_t, s_(t-1)])    z_t from Q(Z | h_t) = N(mu(h_t), sigma(h_t)^2)
        s_t = RNN_dec(s_(t-1), z_t)               c_t = c_(t-1) + write(s_t)

    s_(t-1) and s_t determine the grids of Gaussian filters that read and write (`gaussian_filters`). Without
    an image, z_t is from N(0, 1). RNN_enc and RNN_dec are any stacks of mixers. c_0 is learned, and `fit`
    sets its initial value.
    """

    not_hidden = ("projection",)
    no_decay = ("canvas",)

    def __init__(
        self, config: ModelConfig, height: int, width: int, *, steps: int, latent: int, read: int, write: int
    ):
        super().__init__()
        self.steps, self.latent, self.read_size, self.write_size = steps, latent, read, write
        self.encoder = make_stack(MixerFactory(config), 2 * read**2 + config.width, steps)
        self.decoder = make_stack(MixerFactory(config), latent, steps)
        self.posterior = nn.Linear(config.width, 2 * latent)
        self.read_window = nn.Linear(config.width, 5)
        self.write_window = nn.Linear(config.width, 5)
        self.projection = nn.Linear(config.width, write**2)
        self.canvas = nn.Parameter(torch.zeros(height, width))
        self.width = config.width

    @torch.no_grad()
    def fit(self, images: Float[Tensor, "N 1 H W"]) -> None:
        """Set c_0 to the log-odds of the images' mean (see `layers.data_dependent_init`).

        With a canvas of zeros, the model would spend thousands of steps on learning the background.
        """
        self.canvas.copy_(images[:, 0].mean(0).clamp(MIN_BRIGHTNESS, 1 - MIN_BRIGHTNESS).logit())

    def layer_groups(self) -> LayerGroups:
        """Return the parameters of encoder and decoder grouped by depth."""
        return merge_layer_groups(self.encoder.layer_groups(), self.decoder.layer_groups())

    def reusable_encoder(self) -> nn.Module:
        """Return the encoder, which another run can reuse."""
        return self.encoder

    def forward(self, images: Float[Tensor, "B H W"], noise: Float[Tensor, "B T Z"]) -> DrawOutput:
        """Reconstruct images (pixel values from 0 to 1) with the posterior. `noise` is from N(0, 1)."""
        return self._draw(images, noise)

    def sample(self, noise: Float[Tensor, "B T Z"]) -> DrawOutput:
        """Generate drawings from `noise`, which is from N(0, 1)."""
        return self._draw(None, noise)

    def _draw(self, images: Tensor | None, noise: Tensor) -> DrawOutput:
        batch = len(noise)
        canvas = self.canvas.expand(batch, -1, -1)
        decoder_state = noise.new_zeros(batch, self.width)
        encoded: State = None
        decoded: State = None
        canvases, step_kl, windows = [], [], []
        for step in range(self.steps):
            latent, kl = noise[:, step], noise.new_zeros(batch)
            if images is not None:
                inputs = self._read(images, canvas, decoder_state)
                features, encoded, _ = self.encoder(inputs[:, None], encoded)
                mean, log_variance = at_least_float32(self.posterior(features[:, 0])).chunk(2, 1)
                latent = mean + (log_variance / 2).exp() * latent
                kl = (mean.square() + log_variance.exp() - log_variance - 1).sum(1) / 2
            features, decoded, _ = self.decoder(latent[:, None], decoded)
            decoder_state = features[:, 0]
            patch, window = self._write(decoder_state)
            canvas = canvas + patch
            canvases.append(canvas)
            step_kl.append(kl)
            windows.append(window)
        return DrawOutput(torch.stack(canvases, 1), torch.stack(step_kl, 1), torch.stack(windows, 1))

    def _read(self, images: Tensor, canvas: Tensor, decoder_state: Tensor) -> Tensor:
        """Return `r_t` and `s_(t-1)`, concatenated (equation 27)."""
        rows, columns, strength = filter_grid(
            at_least_float32(self.read_window(decoder_state)), self.read_size, *images.shape[1:]
        )
        error = images - canvas.sigmoid()
        patches = torch.stack([read_patch(images, rows, columns), read_patch(error, rows, columns)], 1)
        return torch.cat([(strength[:, None, None, None] * patches).flatten(1), decoder_state], 1)

    def _write(self, decoder_state: Tensor) -> tuple[Tensor, Tensor]:
        """Return `write(s_t)` (equations 28 and 29), and its window."""
        rows, columns, strength = filter_grid(
            at_least_float32(self.write_window(decoder_state)), self.write_size, *self.canvas.shape
        )
        patch = (
            at_least_float32(self.projection(decoder_state)).view(-1, self.write_size, self.write_size)
            / strength[:, None, None]
        )
        ends = [
            bank[:, end] @ torch.arange(bank.shape[2]).to(bank) for bank in (rows, columns) for end in (0, -1)
        ]
        return write_patch(patch, rows, columns), torch.stack(ends, 1).detach()
