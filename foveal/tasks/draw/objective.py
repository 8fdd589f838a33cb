"""The objective of DRAW: a variational bound."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.stateless import StatelessObjective
from foveal.tasks.draw.model import DrawModel, DrawOutput


class DrawObjective(StatelessObjective):
    """`L = -log p(x | c_T) + sum_t KL(Q(z_t | h_t) || N(0, 1))` in nats per image, an upper bound of `-log
    p(x)`.

    (Gregor et al. 2015, equations 9 to 12.) The column `source` of a batch is (B, 1, H, W), from 0 to 1.
    Pixels are Bernoulli. A pixel value between 0 and 1 is the probability of a white pixel, so L is the mean
    over all black and white images with these probabilities.
    """

    def __init__(self, model: DrawModel):
        self.model = model

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return {"loss": float(len(batch.rows))}

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        images = batch.columns["source"].to(self.model.canvas.device)[:, 0]
        output = self.reconstruct(images)
        pixels = F.binary_cross_entropy_with_logits(output.canvases[:, -1], images, reduction="sum")
        latent, rows = output.step_kl.sum(), float(len(images))
        loss = pixels + latent
        metrics = {"loss": (float(loss.detach()), rows), "latent_nats": (float(latent.detach()), rows)}
        return ObjectiveOutput({"loss": Term(loss, rows)}, metrics), None

    def reconstruct(self, images: Float[Tensor, "B H W"]) -> DrawOutput:
        """Reconstruct each image once, with a sample of its posterior."""
        noise = torch.randn(len(images), self.model.steps, self.model.latent, device=images.device)
        output: DrawOutput = self.model(images, noise)
        return output
