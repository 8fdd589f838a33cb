"""DRAW's bound, against the likelihood that it bounds, where that can be computed."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from foveal.config import ModelConfig, OptimizerConfig
from foveal.data.core.batching import ExampleBatch
from foveal.tasks.draw.model import DrawModel
from foveal.tasks.draw.objective import DrawObjective
from foveal.training.optim import Optimizer
from foveal.training.step import train_step


def model_of(steps: int = 1, latent: int = 1, width: int = 8, side: int = 4, grid: int = 2) -> DrawModel:
    config = ModelConfig.model_validate({"width": width, "layers": 1, "mixers": "lstm"})
    return DrawModel(config, side, side, steps=steps, latent=latent, read=grid, write=grid)


def batch_of(images: Tensor) -> ExampleBatch:
    return ExampleBatch(
        torch.arange(len(images)), {"source": images[:, None]}, {}, torch.ones(len(images), dtype=torch.int64)
    )


def log_likelihood(canvases: Tensor, image: Tensor) -> Tensor:
    """`log p(x | c)` of each canvas."""
    chances = canvases.sigmoid()
    return torch.where(image == 1, chances, 1 - chances).log().sum((-2, -1))


def test_the_bound_is_the_likelihood_and_what_the_posterior_is_wrong_by() -> None:
    """`E[L] = -log p(x) + KL(Q(z|x) || p(z|x))`, by the integral over the one number of one step."""
    torch.manual_seed(5)
    model = model_of().double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    image = torch.randint(2, (4, 4)).double()
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64)[:, None]
    width = z[1, 0] - z[0, 0]
    with torch.no_grad():
        joint = Normal(0, 1).log_prob(z[:, 0]) + log_likelihood(
            model.sample(z[:, None]).canvases[:, -1], image
        )
        evidence = (joint.exp().sum() * width).log()
        drawn = model(image.expand(len(z), 4, 4), z[:, None])  # its noise is from the grid
        reconstruction = -log_likelihood(drawn.canvases[:, -1], image)
        bound = ((reconstruction + drawn.step_kl.sum(1)) * Normal(0, 1).log_prob(z[:, 0]).exp()).sum() * width
        mean, deviation = posterior(model, image)
        q = Normal(mean, deviation)
        assert torch.allclose(drawn.step_kl[0, 0], kl_divergence(q, Normal(0, 1)).double())
        gap = (q.log_prob(z[:, 0]).exp() * (q.log_prob(z[:, 0]) - (joint - evidence))).sum() * width
    assert torch.allclose(bound, -evidence + gap, atol=1e-6)
    assert gap > 1e-3, "an image that any posterior would fit"


def posterior(model: DrawModel, image: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of `Q(z_1 | x)`."""
    found: list[Tensor] = []
    hook = model.posterior.register_forward_hook(lambda *call: found.append(call[2]))
    model(image[None], torch.zeros(1, 1, 1, dtype=image.dtype))
    hook.remove()
    mean, variance = found[0][0]
    return mean, (variance / 2).exp()


def test_the_bound_of_grey_images_is_the_sum_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several steps: a grey pixel is a chance of a white one, and each latent vector has its own KL."""
    model = model_of(3, 2)
    torch.nn.init.normal_(model.canvas)
    images, noise = torch.rand(5, 4, 4), torch.randn(5, 3, 2)
    posteriors, latents = list[Tensor](), list[Tensor]()
    model.posterior.register_forward_hook(lambda *call: posteriors.append(call[2]))
    model.decoder.register_forward_pre_hook(lambda _, given: latents.append(given[0][:, 0]))
    monkeypatch.setattr("torch.randn", lambda *size, device: noise)
    result, _ = DrawObjective(model)(batch_of(images), None)

    white = model(images, noise).canvases[:, -1].sigmoid()
    pixels = -(images * white.log() + (1 - images) * (1 - white).log()).sum()
    told = torch.zeros(())
    for step in range(3):
        mean, variance = posteriors[step].chunk(2, 1)
        q = Normal(mean, (variance / 2).exp())
        torch.testing.assert_close(latents[step], q.loc + q.scale * noise[:, step])
        told = told + kl_divergence(q, Normal(0, 1)).sum()
    assert told > 0.1
    torch.testing.assert_close(result.terms["loss"].sum, pixels + told)
    assert result.terms["loss"].weight == 5
    assert result.metrics["loss"] == pytest.approx((float((pixels + told).detach()), 5))
    assert result.metrics["latent_nats"] == pytest.approx((float(told.detach()), 5))


def test_who_draws_nothing_knows_the_first_canvas() -> None:
    model, images = model_of(3, 2), torch.rand(5, 4, 4)
    torch.nn.init.zeros_(model.projection.weight)
    torch.nn.init.zeros_(model.projection.bias)
    model.fit(images[:, None])
    result, _ = DrawObjective(model)(batch_of(images), None)
    mean = images.mean(0)
    expected = -(mean * mean.log() + (1 - mean) * (1 - mean).log()).sum()
    loss, rows = result.metrics["loss"]
    assert (loss - result.metrics["latent_nats"][0]) / rows == pytest.approx(float(expected), abs=1e-4)


@pytest.mark.slow
def test_three_images_are_learnt_by_heart_and_drawn() -> None:
    torch.manual_seed(0)
    images = torch.zeros(3, 6, 6)
    images[0, :3], images[1, :, 3:], images[2, 2:4, 2:4] = 1, 1, 1
    model = model_of(3, 2, 32, 6, 4)
    objective, optimizer = DrawObjective(model), Optimizer(model, OptimizerConfig(name="adam"))
    for step in range(200):
        done, _ = train_step(
            model, objective, optimizer, [batch_of(images.repeat(6, 1, 1))], [None], lr=2e-2, seed=(0, step)
        )
    assert done.loss < 4, "ln 3 = 1.1 can be reached; of what is not looked at 25 are left"
    drawn = model.sample(torch.randn(100, 3, 2)).canvases[:, -1].sigmoid()
    nearest = (drawn[:, None] - images).square().mean((2, 3)).min(1)
    assert (nearest.values < 0.05).float().mean() > 0.7
    assert len(nearest.indices.unique()) == 3


def test_a_broken_image_is_refused_and_changes_nothing() -> None:
    model = model_of(2, 2)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    images = torch.rand(3, 4, 4)
    images[1] = torch.nan
    objective, optimizer = DrawObjective(model), Optimizer(model, OptimizerConfig())
    done, _ = train_step(model, objective, optimizer, [batch_of(images)], [None], lr=1e-2, seed=(0, 0))
    assert done.first_nonfinite is not None
    assert all(map(torch.equal, before, model.parameters()))


def test_the_first_canvas_is_the_mean_of_the_images() -> None:
    images = torch.rand(50, 1, 4, 4).round()
    images[:, :, 0] = 0
    model = model_of()
    model.fit(images)
    mean = images.mean((0, 1)).clamp(0.01, 0.99)
    assert torch.allclose(model.canvas.sigmoid(), mean, atol=1e-6)
    assert model.canvas.requires_grad
