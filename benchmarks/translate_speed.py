"""Training and translating against Hugging Face's Marian of the same size and weights, on random pairs.

Training: the same pairs in the same number of steps. Ours batches pairs of similar lengths, as `foveal train`
does. Marian has a plain loop (clip, fused AdamW) in a separate process, on pairs in random order, padded to
the longest of their batch. Marian is timed on our batches too, which separates the effect of the model from
that of the batches.
Translating: one sentence with beam 5 and eight sentences greedily, the same number of steps on both sides.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.marian import marian, ours
from benchmarks.timing import Measurement, SeparateProcess, interleave, parse_options, ratio, report
from foveal.core.runtime import Precision, autocast, has_fast_bfloat16, keep_freed_memory, resolve_precision
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.length_buckets import BucketedTrainBatches, collate_examples
from foveal.data.text.length_limit import LengthLimit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.ops.padding import sequence_mask
from foveal.tasks.config import from_tables, load_config
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

TOKENS, BATCH_TOKENS, DROPOUT = SpecialTokens(8000), 6000, 0.1


def pairs(count: int) -> Examples:
    """Return random pairs with lengths as in Multi30k: about 14 tokens, targets a little longer."""
    generator = np.random.default_rng(0)
    sizes = generator.normal(14, 4, count).clip(4, 40).astype(int)
    sources = [np.append(generator.integers(TOKENS.size, size=size), TOKENS.eos) for size in sizes]
    targets = [
        np.append(generator.integers(TOKENS.size, size=max(3, size + generator.integers(-3, 4))), TOKENS.eos)
        for size in sizes
    ]
    return Examples({"source": RaggedArray.from_rows(sources), "target": RaggedArray.from_rows(targets)})


def our_training(model: EncoderWithHead, batches: list[ExampleBatch]) -> Callable[[], float]:
    """Return a function that trains our model on the batches with the trainer's own step."""
    config = load_config("translation")
    objective = SequenceToSequenceObjective(model, TOKENS, LengthLimit(60), label_smoothing=0.1)
    optimizer = Optimizer(model, from_tables({"optimizer": {"name": "adamw"}}).optimizer)
    precision = resolve_precision(config.training.precision, torch.device("cpu"))
    step = 0

    def run() -> float:
        nonlocal step
        for batch in batches:
            result, _ = train_step(
                model, objective, optimizer, [batch], [None], lr=1e-4, seed=(0, step), precision=precision
            )
            step += 1
        return result.loss

    return run


def their_training(batches: list[ExampleBatch], precision: Precision) -> Callable[[], float]:
    """Return a function that trains Marian on the batches in a plain loop."""
    theirs = marian(ours(TOKENS.vocab_size), TOKENS, dropout=DROPOUT).train()
    optimizer = torch.optim.AdamW(theirs.parameters(), lr=1e-4, fused=True)
    padding = TOKENS.vocab_size

    def update(batch: ExampleBatch) -> float:
        masks = {}
        for side in ("source", "target"):
            masks[side] = sequence_mask(batch.lengths[side], batch.columns[side].shape[1])
        optimizer.zero_grad()
        with autocast(torch.device("cpu"), precision):
            loss = theirs(
                input_ids=batch.columns["source"].where(masks["source"], padding),
                attention_mask=masks["source"].long(),
                labels=batch.columns["target"].where(masks["target"], -100),
            ).loss
        loss.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return lambda: [update(batch) for batch in batches][-1]


def shuffled(examples: Examples, batches: list[ExampleBatch]) -> list[ExampleBatch]:
    """Return the same pairs in the same number of batches, in random order."""
    rows = np.random.default_rng(0).permutation(np.concatenate([batch.rows for batch in batches]))
    return [collate_examples(examples, part) for part in np.array_split(rows, len(batches))]


def padding_share(batches: list[ExampleBatch]) -> str:
    """Return the share of padding in batches, in per cent."""
    positions = sum(batch.columns[side].numel() for batch in batches for side in ("source", "target"))
    filled = sum(int(batch.lengths[side].sum()) for batch in batches for side in ("source", "target"))
    return f"{1 - filled / positions:.1%}"


def measure_training(quick: bool) -> list[Measurement]:
    examples = pairs(200 if quick else 6000)
    train_batches = BucketedTrainBatches(examples, BATCH_TOKENS, 0)
    near = [train_batches.batch(0, index) for index in range(min(train_batches.per_epoch, 6))]
    random_order = shuffled(examples, near)
    model = ours(TOKENS.vocab_size, dropout=DROPOUT).train()
    runs: dict[str, Callable[[], object]] = {"ours": our_training(model, near)}
    comparisons: dict[str, tuple[float | None, list[ExampleBatch], Precision]] = {
        "in a plain loop": (1.5, random_order, "float32"),
        "on our batches": (None, near, "float32"),
    }
    if has_fast_bfloat16(torch.device("cpu")):
        comparisons["on our batches in bfloat16"] = (None, near, "bfloat16")
    for name, (_, batches, precision) in comparisons.items():
        runs[name] = SeparateProcess(their_training, batches, precision)
    samples = interleave(runs, rounds=7, seconds=4.0, quick=quick)
    tokens = sum(batch.tokens for batch in near)
    speed = {name: f"{tokens / samples.median(name):,.0f}" for name in runs}
    parameters = sum(weight.numel() for weight in model.parameters())
    return [
        ratio(
            f"Training a Transformer for translation over Hugging Face's Marian {name}",
            samples.speedup("ours", name),
            goal,
            f"{speed['ours']} against {speed[name]} target tokens/s",
            f"padding {padding_share(near)} against {padding_share(batches)}",
            f"{parameters:,} parameters",
            samples.trust,
        )
        for name, (goal, batches, _) in comparisons.items()
    ]


def measure_translating(quick: bool) -> list[Measurement]:
    """Measure translating. Every hypothesis has the maximum length, since untrained models stop anywhere."""
    steps = 4 if quick else 24
    model = ours(TOKENS.vocab_size).eval()
    with torch.no_grad():
        model.head.projection.weight[TOKENS.eos] = 0.0
    objective, theirs, examples = (
        SequenceToSequenceObjective(model, TOKENS, LengthLimit(steps)),
        marian(model, TOKENS).eval(),
        pairs(8),
    )
    measurements = []
    for beam, rows, goal in ((5, 1, 1.5), (1, 8, 1.4)):
        batch = collate_examples(examples, np.arange(rows))
        mask = sequence_mask(batch.lengths["source"], batch.columns["source"].shape[1])
        source = batch.columns["source"].where(mask, TOKENS.vocab_size)

        def run_ours(batch: ExampleBatch = batch, beam: int = beam) -> Any:
            return objective.beam_decode(batch, beam)

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
        measurements.append(
            ratio(
                f"Translating {rows} sentence(s), beam {beam}, {steps} tokens, over Hugging Face's generate",
                samples.speedup("ours", "theirs"),
                goal,
                f"{times[0]} against {times[1]}",
                samples.trust,
            )
        )
    return measurements


def main() -> None:
    options = parse_options(__doc__)
    keep_freed_memory()
    torch.manual_seed(0)
    report([*measure_training(options.quick), *measure_translating(options.quick)], options)


if __name__ == "__main__":
    main()
