"""Training and translating against Hugging Face's Marian of the same size and weights, on random pairs.

Training: target tokens per second on the same batches of near lengths; Marian in the usual loop (clip, fused
AdamW). Translating: beam 5 of one sentence and greedy for eight, the same number of steps on both sides.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.marian import marian, ours
from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.config import from_tables, load_config
from foveal.core.runtime import autocast, keep_freed_memory, settled
from foveal.data.batching import ExampleBatch
from foveal.data.buckets import Buckets, gather
from foveal.data.examples import Examples, Ragged
from foveal.data.marks import Marks
from foveal.data.room import Room
from foveal.models.encoder import Encoded
from foveal.ops.padding import present
from foveal.tasks.sequence import SequenceTask
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

MARKS, BUDGET, DROPOUT = Marks(8000), 6000, 0.1


def pairs(count: int) -> Examples:
    """Sentences as long as those of Multi30k: about 14 tokens, targets a little longer."""
    draw = np.random.default_rng(0)
    sizes = draw.normal(14, 4, count).clip(4, 40).astype(int)
    sources = [np.append(draw.integers(MARKS.size, size=size), MARKS.stop) for size in sizes]
    targets = [
        np.append(draw.integers(MARKS.size, size=max(3, size + draw.integers(-3, 4))), MARKS.stop)
        for size in sizes
    ]
    return Examples({"source": Ragged.from_rows(sources), "target": Ragged.from_rows(targets)})


def our_training(model: Encoded, batches: list[ExampleBatch]) -> Callable[[], float]:
    config = load_config("translate")
    task = SequenceTask(model, MARKS, Room(60), smoothing=0.1)
    optimizer = Optimizer(model, from_tables({"optimizer": {"name": "adamw"}}).optimizer)
    precision = settled(config.training.precision, torch.device("cpu"))
    step = 0

    def run() -> float:
        nonlocal step
        batch = batches[step % len(batches)]
        done, _ = train_step(
            model, task, optimizer, [batch], [None], rate=1e-4, seed=(0, step), precision=precision
        )
        step += 1
        return done.loss

    return run


def their_training(theirs: Any, batches: list[ExampleBatch], precision: str) -> Callable[[], float]:
    optimizer = torch.optim.AdamW(theirs.parameters(), lr=1e-4, fused=True)
    step, padding = 0, MARKS.vocabulary

    def run() -> float:
        nonlocal step
        batch = batches[step % len(batches)]
        sides = {}
        for side in ("source", "target"):
            sides[side] = present(batch.lengths[side], batch.columns[side].shape[1])
        optimizer.zero_grad()
        with autocast(torch.device("cpu"), precision):  # type: ignore[arg-type]
            loss = theirs(
                input_ids=batch.columns["source"].where(sides["source"], padding),
                attention_mask=sides["source"].long(),
                labels=batch.columns["target"].where(sides["target"], -100),
            ).loss
        loss.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        step += 1
        return float(loss.detach())

    return run


def training(quick: bool) -> list[Figure]:
    order = Buckets(pairs(200 if quick else 6000), BUDGET, 0)
    batches = [order.batch(0, index) for index in range(min(order.per_epoch, 12))]
    model = ours(MARKS.vocabulary, dropout=DROPOUT).train()
    runs: dict[str, Callable[[], object]] = {"ours": our_training(model, batches)}
    for precision in ("float32", "bfloat16"):
        runs[precision] = their_training(marian(model, MARKS, dropout=DROPOUT).train(), batches, precision)
    samples = interleave(runs, rounds=7, seconds=4.0, quick=quick)
    tokens = sum(batch.tokens for batch in batches) / len(batches)
    speed = {name: f"{tokens / samples.median(name):,.0f}" for name in samples.seconds}
    parameters = sum(weight.numel() for weight in model.parameters())
    return [
        ratio(
            f"Training a Transformer for translation over Hugging Face's Marian in {precision}",
            samples.speedup("ours", precision),
            1.5 if precision == "float32" else None,
            f"{speed['ours']} against {speed[precision]} target tokens/s",
            f"{parameters:,} parameters",
            samples.trust,
        )
        for precision in ("float32", "bfloat16")
    ]


def translating(quick: bool) -> list[Figure]:
    """Every hypothesis goes to the limit: untrained models would stop anywhere."""
    steps = 4 if quick else 24
    model = ours(MARKS.vocabulary).eval()
    with torch.no_grad():
        model.head.projection.weight[MARKS.stop] = 0.0
    task, theirs, examples = SequenceTask(model, MARKS, Room(steps)), marian(model, MARKS).eval(), pairs(8)
    figures = []
    for beam, rows, goal in ((5, 1, 1.5), (1, 8, 1.4)):
        batch = gather(examples, np.arange(rows))
        mask = present(batch.lengths["source"], batch.columns["source"].shape[1])
        source = batch.columns["source"].where(mask, MARKS.vocabulary)

        def run_ours(batch: ExampleBatch = batch, beam: int = beam) -> Any:
            return task.write(batch, beam)

        def run_theirs(source: Any = source, mask: Any = mask, beam: int = beam) -> Any:
            with torch.inference_mode():
                return theirs.generate(
                    source,
                    attention_mask=mask.long(),
                    num_beams=beam,
                    do_sample=False,
                    min_new_tokens=steps,
                    max_new_tokens=steps,
                    length_penalty=0.0,
                    bad_words_ids=None,
                )

        samples = interleave({"ours": run_ours, "theirs": run_theirs}, rounds=7, quick=quick)
        times = [f"{1e3 * samples.median(name):.0f} ms" for name in ("ours", "theirs")]
        figures.append(
            ratio(
                f"Translating {rows} sentence(s), beam {beam}, {steps} tokens, over Hugging Face's generate",
                samples.speedup("ours", "theirs"),
                goal,
                f"{times[0]} against {times[1]}",
                samples.trust,
            )
        )
    return figures


def main() -> None:
    given = options(__doc__)
    keep_freed_memory()
    torch.manual_seed(0)
    report([*training(given.quick), *translating(given.quick)], given)


if __name__ == "__main__":
    main()
