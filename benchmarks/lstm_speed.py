"""Training speed of one LSTM layer: our step against plain `torch.nn.LSTM`, and bfloat16 against float32.

`gru_speed` does the same with a GRU. Both sides embed tokens, run the layer with a carried state, project to
the vocabulary, clip the gradient's norm and update with fused AdamW. They start from the same weights, and
their first losses are compared.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.subject import VOCABULARY, Subject
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core.state import detach_state
from foveal.tasks.config import from_tables

THEIRS = {"lstm": nn.LSTM, "gru": nn.GRU}


class PlainModel(nn.Module):
    """An embedding, torch's recurrent layer and a projection."""

    def __init__(self, kind: str, width: int):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY.size, width)
        self.recurrent = THEIRS[kind](width, width, batch_first=True)
        self.projection = nn.Linear(width, VOCABULARY.size)

    def forward(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        y, state = self.recurrent(self.embedding(tokens), state)
        return self.projection(y), state


def copy_weights(cell: nn.Module, theirs: Any) -> None:
    """Copy a cell's weights into torch's layer. Its second bias becomes zero, as in our new GRU."""
    ours: Any
    for weight, ours in zip(theirs.parameters(), (cell.weight_input, cell.weight_hidden, cell.bias)):  # noqa: B905
        weight.data.copy_(ours)
    nn.init.zeros_(theirs.bias_hh_l0)


def plain_loop(subject: Any) -> Callable[[], float]:
    """Return a step of the plain loop, on the subject's batches and with its weights."""
    ours: Any
    ours, cell = subject.model, subject.model.stack.blocks[0].mixer.cell
    model = PlainModel(subject.config.model.mixers, ours.width)
    model.embedding.weight.data.copy_(ours.embedding.table)
    model.projection.load_state_dict(ours.projection.state_dict())
    copy_weights(cell, model.recurrent)
    optimizer = torch.optim.AdamW(model.parameters(), lr=subject.config.optimizer.lr, fused=True)
    step, state = 0, None

    def run() -> float:
        nonlocal step, state
        batch = subject.batches[step % len(subject.batches)]
        optimizer.zero_grad()
        logits, state = model(batch.inputs, None if batch.stream_starts.all() else state)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state = detach_state(state)
        step += 1
        return float(loss.detach())

    return run


def subject(width: int, batch: int, chunk: int, precision: str = "float32", kind: str = "lstm") -> Subject:
    """Return our side: one recurrent layer on streams of text."""
    return Subject(
        from_tables(
            {
                "data": {"context_length": chunk, "batch_tokens": batch * chunk},
                "task": {"batching": "streams"},
                "model": {"mixers": kind, "layers": 1, "width": width},
                "training": {"precision": precision},
            }
        )
    )


def measure(
    width: int,
    batch: int,
    chunk: int,
    quick: bool,
    kind: str = "lstm",
    goals: tuple[float, float] = (0.95, 1.6),
) -> list[Measurement]:
    """Measure ours against the plain loop; at width 512 also bfloat16 against float32."""
    if quick:
        batch, chunk = 4, 8
    ours = subject(width, batch, chunk, kind=kind)
    bare = plain_loop(ours)
    first, expected = ours(), bare()
    assert math.isclose(first, expected, rel_tol=1e-5), f"not the same model: {first} and {expected}"
    runs: dict[str, Callable[[], float]] = {"float32": ours, "bare": bare}
    if width == 512:
        runs["bfloat16"] = subject(width, batch, chunk, "bfloat16", kind)
    samples = interleave(runs, quick=quick)
    speed = {name: f"{ours.tokens / samples.median(name):,.0f} tokens/s" for name in runs}
    size = f"hidden {width}, batch {batch}, chunk {chunk}"
    name = kind.upper()
    notes = f"{speed['float32']} against {speed['bare']}", samples.trust
    over = samples.speedup("float32", "bare")
    measurements = [ratio(f"{name} training over bare nn.{name}, {size}", over, goals[0], *notes)]
    if width == 512:
        notes = f"{speed['bfloat16']} against {speed['float32']}", samples.trust
        faster = samples.speedup("bfloat16", "float32")
        measurements.append(
            ratio(f"{name} training in bfloat16 over float32, {size}", faster, goals[1], *notes)
        )
    return measurements


if __name__ == "__main__":
    options = parse_options(__doc__)
    report(measure(128, 64, 64, options.quick) + measure(512, 64, 100, options.quick), options)
