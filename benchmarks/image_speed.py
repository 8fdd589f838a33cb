"""Training speed on images: ResNet-18 and ViT-Ti against plain loops in float32.

Our side is the trainer's own step, in bfloat16 where the machine has fast bfloat16. The plain loop runs in a
separate process: the same ResNet modules with torch's operations and channels first, as torch stores them;
and a ViT of the same size with torch's fused attention and LayerNorm. Both sides have the same random images,
of 32 pixels (ten classes) and of 224 pixels (1,000 classes), and the same update.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.plain import PlainBlock
from benchmarks.timing import Measurement, SeparateProcess, interleave, parse_options, ratio, report
from foveal.core.runtime import keep_freed_memory
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.ops.jit.dispatch import reference_only
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, resolve_config
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

SETTINGS = {
    "resnet-18": ("optimizer.name=momentum", "optimizer.lr=0.01"),
    "vit-ti": ("optimizer.name=adamw", "optimizer.lr=1e-4"),
}


class Subject:
    """A named network with its trainer step. A call is one update."""

    def __init__(self, network: str, size: int, batch: int):
        small, classes = size < 64, 10 if size < 64 else 1000
        settings = [
            f"model.encoder.network={network}",
            f"model.encoder.stem={'small' if small else 'published'}",
            f"data.image.size={size}",
            "optimizer.clip_norm=0",
            *SETTINGS[network],
        ]
        self.config = resolve_config(load_config("image-classification", settings), torch.device("cpu"))
        image = ImageProcessor(Statistics((0.0,) * 3, (1.0,) * 3), size)
        processor = PairProcessor(image, LabelProcessor(tuple(map(str, range(classes)))))
        task = task_of(self.config).bind(processor)
        self.model = build_model(task, torch.device("cpu"))
        self.objective = task.bind(processor, self.model).objective()
        self.optimizer = Optimizer(self.model, self.config.optimizer)
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randn(batch, 3, size, size, generator=generator)
        self.labels = torch.randint(classes, (batch,), generator=generator)

    def __call__(self) -> float:
        columns = {"source": self.images, "label": self.labels}
        result, _ = train_step(
            self.model,
            self.objective,
            self.optimizer,
            [ExampleBatch(torch.arange(len(self.labels)), columns, {}, torch.ones_like(self.labels))],
            [None],
            lr=self.config.optimizer.lr,
            seed=(0, 0),
            precision=self.config.training.precision,
        )
        return result.loss


class PlainResNet(nn.Module):
    """The same modules with the same weights, on images with channels first."""

    def __init__(self, subject: Any):
        super().__init__()
        self.blocks = nn.Sequential(*subject.model.encoder.blocks)
        self.projection = subject.model.head.projection

    def forward(self, images: Tensor) -> Tensor:
        return self.projection(self.blocks(images).mean((2, 3)))


class PlainViT(nn.Module):
    """A ViT-Ti of torch's layers."""

    def __init__(self, subject: Any):
        super().__init__()
        size = subject.images.shape[-1]
        width, heads, layers, patch = 192, 3, 12, 4 if size < 64 else 16
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + (size // patch) ** 2, width) * 0.02)
        self.blocks = nn.Sequential(
            *(PlainBlock(width, heads, causal=False) for _ in range(layers)), nn.LayerNorm(width)
        )
        self.projection = nn.Linear(width, subject.model.head.classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).mT
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.projection(self.blocks(x)[:, 0])


PLAIN = {"resnet-18": PlainResNet, "vit-ti": PlainViT}


def loop(network: str, size: int, batch: int, parameters: int) -> Callable[[], float]:
    """Return a step of the usual training loop on the subject's images."""
    subject = Subject(network, size, batch)
    model = PLAIN[network](subject)
    assert parameters == count_parameters(model), (parameters, count_parameters(model))
    lr = subject.config.optimizer.lr
    if subject.config.optimizer.name == "momentum":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(
            model.parameters(), lr, momentum=0.9, weight_decay=5e-4
        )
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=5e-4)

    def run() -> float:
        optimizer.zero_grad()
        with reference_only():  # torch's own convolutions
            loss = F.cross_entropy(model(subject.images), subject.labels)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return run


def count_parameters(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def measure(network: str, size: int, batch: int, goal: float, quick: bool) -> Measurement:
    """Measure our step over the plain loop."""
    subject = Subject(network, size, batch)
    parameters = count_parameters(subject.model)
    runs: dict[str, Callable[[], float]] = {
        "ours": subject,
        "plain": SeparateProcess(loop, network, size, batch, parameters),
    }
    if network == "resnet-18":
        first = {name: run() for name, run in runs.items()}
        assert abs(first["ours"] - first["plain"]) < 0.02, first
    samples = interleave(runs, rounds=5, quick=quick)
    speed = {name: f"{batch / samples.median(name):,.1f}" for name in runs}
    return ratio(
        f"{network} training over a plain loop in float32, {batch} images of {size} x {size}",
        samples.speedup("ours", "plain"),
        goal,
        f"{speed['ours']} against {speed['plain']} images/s; ours in {subject.config.training.precision}",
        f"{parameters:,} parameters",
        samples.trust,
    )


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    sizes = [
        ("resnet-18", 32, 128, 1.5),
        ("resnet-18", 224, 32, 1.9),
        ("vit-ti", 32, 128, 1.25),
        ("vit-ti", 224, 32, 1.45),
    ]
    report(
        [
            measure(name, size, 2 if options.quick else batch, goal, options.quick)
            for name, size, batch, goal in sizes
        ],
        options,
    )
