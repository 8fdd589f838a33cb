"""The gradient of the last step's loss for the state at each earlier step, and what it is made of.

With L_T, the loss at the last step, backpropagation through time multiplies Jacobians:
`dL_T/dh_t = dL_T/dh_T J_T J_(T-1) .. J_(t+1)`, where `J_s = dh_s/dh_(s-1)`. For a vanilla RNN
`J_s = diag(f'(a_s)) W_hh`. Their product vanishes if the largest singular value of W_hh is below 1 over the
largest slope of f, and can explode only if it is above (Bengio et al. 1994; Pascanu et al. 2013).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.capture.capture import GRADIENT, capture
from foveal.layers.mixers.recurrent_cells import ElmanCell


class Spectrum(NamedTuple):
    """The spectrum of a square matrix."""

    singular_values: Float[Tensor, " H"]
    """From the largest on."""
    eigenvalues: Tensor
    """Complex numbers, from the largest absolute value on."""

    @property
    def norm(self) -> float:
        """The largest singular value."""
        return float(self.singular_values[0])

    @property
    def radius(self) -> float:
        """The largest absolute value of an eigenvalue."""
        return float(self.eigenvalues.abs()[0])


def state_gradients(
    model: DecoderLM, tokens: Int[Tensor, "B T"], targets: Int[Tensor, " B"], names: Sequence[str]
) -> dict[str, Float[Tensor, "B T U"]]:
    """Return `dL_T/ds_t` of each row for each named state s. L_T is `-log p(target)` after the last token.

    Recurrent layers run step by step, so the gradient has all paths through later steps. The weights keep
    their gradients.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    # cuDNN has no gradients outside of training.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        with capture(model, *(GRADIENT + name for name in names)) as record:
            features, _, _ = model(tokens, model.init_state(None, len(tokens)))
            loss = model.losses(features[:, -1], targets).label_smoothed
        torch.autograd.grad(loss, weights, allow_unused=True)
    return {name: record[GRADIENT + name][0].detach() for name in names}


def relative_norms(gradients: Float[Tensor, "B T U"]) -> Float[Tensor, "B T"]:
    """Return the norm of each step over that of the last step, from the last step backwards."""
    norms = gradients.double().norm(dim=2).flip(1)
    return norms / norms[:, :1]


def spectrum(weight: Float[Tensor, "H H"]) -> Spectrum:
    """Return the singular values and eigenvalues of a matrix."""
    exact = weight.detach().double().cpu()
    eigenvalues = torch.linalg.eigvals(exact)
    return Spectrum(torch.linalg.svdvals(exact), eigenvalues[eigenvalues.abs().argsort(descending=True)])


def jacobian_norms(cell: ElmanCell, states: Float[Tensor, "B T H"]) -> Float[Tensor, "B T"]:
    """Return the spectral norm of `dh_T/dh_(T-k)` for k = 0 .. T - 1, from the states h of a vanilla RNN."""
    return torch.stack([torch.linalg.matrix_norm(J, 2) for J in _jacobian_products(cell, states)], 1)


def _jacobian_products(cell: ElmanCell, states: Float[Tensor, "B T H"]) -> Iterator[Float[Tensor, "B H H"]]:
    h = states.detach().double()
    slopes = (h > 0).double() if cell.relu else 1 - h.square()
    product = torch.eye(h.shape[2], dtype=h.dtype, device=h.device).expand(len(h), -1, -1)
    for slope in slopes.flip(1).unbind(1):
        yield product
        product = product @ (slope[:, :, None] * cell.weight_hidden.detach().double())
