"""A small module of a user's own, trained by `foveal.Trainer`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import foveal
from tests.support.run_fingerprint import lines, without_clock

COUNT, BATCH = 22, 4
"""Examples, and those in a batch: an epoch is six batches, the last of two examples."""


class Net(nn.Module):
    """Batch norm and dropout, so that running statistics and noise count."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.first, self.norm = nn.Linear(3, width), nn.BatchNorm1d(width)
        self.dropout, self.last = nn.Dropout(0.2), nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.dropout(self.norm(self.first(x)).relu()))


def make_net() -> Net:
    torch.manual_seed(5)
    return Net()


def examples() -> TensorDataset:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(COUNT, 3, generator=generator)
    return TensorDataset(x, (x.sum(1) > 0).long())


def loss(module: nn.Module, batch: Any) -> Tensor:
    return F.cross_entropy(module(batch[0]), batch[1])


def loss_and_accuracy(module: nn.Module, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
    logits = module(batch[0])
    right = (logits.argmax(-1) == batch[1]).float().mean()
    return F.cross_entropy(logits, batch[1]), {"accuracy": right}


def batches() -> list[Any]:
    return list(DataLoader(examples(), BATCH))


def valid() -> DataLoader[Any]:
    return DataLoader(examples(), BATCH)


class Stream(IterableDataset[Any]):
    """Examples in a random order, and no length."""

    def __iter__(self) -> Iterator[Any]:
        data = examples()
        return (data[number] for number in torch.randperm(COUNT).tolist())


class OwnState:
    """A loader whose order depends on a state of its own, which it stores."""

    def __init__(self) -> None:
        self.drawn = 0

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[Any]:
        while self.drawn % 6 or not self.drawn or self.fresh:
            self.fresh = False
            rows = torch.randint(COUNT, (BATCH,), generator=torch.Generator().manual_seed(self.drawn))
            self.drawn += 1
            yield examples()[rows]
        self.fresh = True

    fresh = True

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self.drawn, "fresh": self.fresh, "more": [None, torch.tensor(1)]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drawn, self.fresh = state["drawn"], state["fresh"]


def stateful_loader() -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(examples(), batch_size=BATCH, shuffle=True)


def stateful_loader_with_generator() -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    generator = torch.Generator().manual_seed(1)
    return StatefulDataLoader(examples(), batch_size=BATCH, shuffle=True, generator=generator)


def by_number(epoch: int, index: int) -> Any:
    rows = torch.randint(COUNT, (BATCH,))
    assert epoch * 6 + index >= 0
    return examples()[rows]


def some_batches() -> Iterator[Any]:
    yield from batches()


SOURCES: dict[str, Callable[[], Any]] = {
    "list": batches,
    "function": lambda: by_number,
    "loader": lambda: DataLoader(examples(), BATCH, shuffle=True),
    "loader with a generator": lambda: DataLoader(
        examples(), BATCH, shuffle=True, generator=torch.Generator().manual_seed(1)
    ),
    "loader without length": lambda: DataLoader(Stream(), BATCH),
    "loader with state": stateful_loader,
    "loader with state and a generator": stateful_loader_with_generator,
    "own state": OwnState,
    "generator function": lambda: some_batches,
}
"""Sources of training batches that are exact after a resume."""


def train(
    run: Path | str, source: Any = None, objective: Any = loss, settings: Any = None, **options: Any
) -> Any:
    """Train a small module for nine steps."""
    source = batches() if source is None else source
    options = {"module": make_net(), "budget": "9steps", **options}
    module = options.pop("module")
    return foveal.Trainer(module, objective, source, run=run, settings=settings, **options).run()


def ending(run: Path) -> dict[str, Any]:
    """Return what two equal runs have in common."""
    newest = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[0]))
    return {
        "kept": (run / "model.safetensors").read_bytes(),
        "weights": (newest / "weights.safetensors").read_bytes(),
        "optimizer": (newest / "optimizer.safetensors").read_bytes(),
        "log": [without_clock(line) for line in lines(run / "metrics.jsonl")],
    }
