"""A tiny task: a tanh RNN on random tokens, with carry, learned initial state, dropout and batch norm."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import Config
from foveal.core.callbacks import Callback, Record, TrainingInfo
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import derived_seed
from foveal.core.signals import SignalHandler
from foveal.store.run import RunFolder, create_run, open_run
from foveal.tasks.config import from_tables
from foveal.tasks.read_settings import config_to_toml
from foveal.training.callbacks import CallbackList
from foveal.training.time_left import FinalTest
from foveal.training.trainer import Trainer

V, D, T, ROWS = 7, 6, 5, 3


@dataclass(frozen=True)
class ToyBatch:
    inputs: Tensor
    targets: Tensor
    stream_starts: Tensor | None

    @property
    def tokens(self) -> int:
        return self.inputs.numel()


@dataclass(frozen=True)
class ToyBatches:
    """Streams of random tokens: row r begins anew where (index + r) is a multiple of `length`."""

    per_epoch: int = 6
    slots: int = 1
    rows: int = ROWS
    length: int = 6
    carried: bool = True
    seed: int = 0

    def batch(self, epoch: int, index: int) -> ToyBatch:
        generator = torch.Generator().manual_seed(derived_seed(self.seed, epoch, index))
        tokens = torch.randint(V, (self.rows, T + 1), generator=generator)
        chunk = index // self.slots
        stream_starts = (chunk + torch.arange(self.rows)) % self.length == 0
        stream_starts |= torch.tensor(chunk == 0)
        return ToyBatch(tokens[:, :-1], tokens[:, 1:], stream_starts if self.carried else None)


class ToyModel(nn.Module):
    def __init__(self, dropout: float = 0.2, norm: bool = True, dtype: torch.dtype = torch.float32):
        super().__init__()
        torch.manual_seed(1)
        self.table = nn.Embedding(V, D)
        self.input = nn.Linear(D, D)
        self.hidden = nn.Linear(D, D, bias=False)
        self.first = nn.Parameter(torch.randn(D) * 0.1)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.BatchNorm1d(D) if norm else nn.Identity()
        self.projection = nn.Linear(D, V)
        self.to(dtype)

    def forward(self, tokens: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        x = self.input(self.table(tokens))
        outputs = []
        for t in range(tokens.shape[1]):
            h = torch.tanh(x[:, t] + self.hidden(h))
            outputs.append(h)
        features = self.dropout(torch.stack(outputs, 1))
        return self.projection(self.norm(features.flatten(0, 1))).view(*tokens.shape, V), h


@dataclass
class ToyObjective:
    """Cross-entropy and a small second term with another weight."""

    model: ToyModel
    calls: int = 0
    hook: Any = None
    """Called with (where, calls) at each call, to inject faults and signals."""

    def __call__(self, batch: ToyBatch, carry: Any) -> tuple[ObjectiveOutput, Any]:
        self.calls += self.model.training
        if self.hook:
            self.hook("train" if self.model.training else "evaluate", self.calls)
        state = self.start(batch) if carry is None else carry
        logits, h = self.model(batch.inputs, state["h"])
        losses = nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="sum")
        weights = self.weights(batch)
        terms = {
            "loss": Term(losses, weights["loss"]),
            "size": Term(logits.square().sum(), weights["size"], 0.01),
        }
        metrics = {"loss": (float(losses.detach()), weights["loss"])}
        return ObjectiveOutput(terms, metrics), {"h": h, "seen": state["seen"] + 1}

    def weights(self, batch: ToyBatch) -> dict[str, float]:
        return {"loss": float((batch.targets > 0).sum()), "size": float(len(batch.inputs))}

    def start(self, batch: ToyBatch) -> Any:
        return {"h": self.model.first.expand(len(batch.inputs), D), "seen": 0}

    def preview(self, step: int) -> str | None:
        if self.hook:
            self.hook("preview", self.calls)
        logits, _ = self.model(torch.zeros(2, 3, dtype=torch.long), self.model.first.expand(2, D))
        return str(torch.multinomial(logits.softmax(-1).flatten(0, 1), 2).tolist())


@dataclass
class RecordingCallback(Callback):
    """A callback that records all events."""

    steps: list[Record] = field(default_factory=list)
    skipped: list[Record] = field(default_factory=list)
    evaluations: list[tuple[Record, int | None]] = field(default_factory=list)
    samples: list[tuple[int, str]] = field(default_factory=list)
    saves: list[tuple[int, Path]] = field(default_factory=list)
    begun: list[Any] = field(default_factory=list)
    plans: list[Any] = field(default_factory=list)
    end: Any = None
    on_save: Any = None

    def on_start(self, info: TrainingInfo) -> None:
        self.begun.append((info.step, info.plan, list(info.damaged)))

    def on_plan(self, plan: Any) -> None:
        self.plans.append(plan)

    def on_step(self, record: Record) -> None:
        self.steps.append(record)

    def on_skipped_step(self, record: Record) -> None:
        self.skipped.append(record)

    def on_evaluating(self, index: int, total: int) -> None:
        assert 0 <= index < total

    def on_evaluation(self, record: Record) -> None:
        self.evaluations.append((record, record["best_step"]))

    def on_sample(self, step: int, text: str) -> None:
        self.samples.append((step, text))

    def on_checkpoint(self, step: int, path: Path) -> None:
        self.saves.append((step, path))
        if self.on_save:
            self.on_save(step)

    def on_end(self, record: Record) -> None:
        self.end = (record["step"], record["reason"], record["best_step"], record["best_loss"])


class ToyTrainer(Trainer):
    """A trainer that gives tests its own type of objective, and the callback that records all events."""

    objective: ToyObjective
    recorder: RecordingCallback


def toy_config(**sections: dict[str, Any]) -> Config:
    """Return a config with small budgets and checkpoints only on request. The given sections override it."""
    base: dict[str, Any] = {
        "optimizer": {"name": "adamw", "lr": 0.02, "weight_decay": 0.1},
        "schedule": {"warmup_steps": 2, "decay_start": 0.5},
        "training": {"budget": "12steps", "evaluate_every": 2, "checkpoint_seconds": 1e9, "ema_decay": 0.9},
    }
    return from_tables(base, sections)


def toy_trainer(
    path: Path,
    config: Config | None = None,
    *,
    hook: Any = None,
    valid: bool = True,
    test: FinalTest | None = None,
    callbacks: Sequence[Callback] = (),
    **model: Any,
) -> ToyTrainer:
    """Return a new trainer for the run folder at `path`, which is created if necessary."""
    folder = open_run(path) if path.exists() else new_run(path, config or toy_config())
    net = ToyModel(**model)
    slots = folder.config.training.grad_accumulation
    batches = ToyBatches(per_epoch=6 * slots, slots=slots, seed=folder.config.training.seed)
    held_out = ToyBatches(per_epoch=2, seed=99) if valid else None
    recorder = RecordingCallback()
    all_callbacks, objective = CallbackList([recorder, *callbacks]), ToyObjective(net, hook=hook)
    trainer = ToyTrainer(folder, net, objective, batches, held_out, all_callbacks, test)
    trainer.recorder = recorder
    return trainer


def new_run(path: Path, config: Config) -> RunFolder:
    return create_run(
        path,
        config,
        config_to_toml(config),
        {"text/tokenizer.json": b'{"kind": "character"}'},
        {"characters": 100},
    )


def train(path: Path, config: Config | None = None, **options: Any) -> ToyTrainer:
    trainer = toy_trainer(path, config, **options)
    trainer.run(SignalHandler())
    return trainer
