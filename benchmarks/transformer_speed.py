"""Training speed of Transformers: our `attention` preset against plain loops and Hugging Face.

Ours is in bfloat16 where the machine has fast bfloat16, as in `foveal train`. The others run in separate
processes, without our setting of the allocator.

All train on the same batches. The plain loop trains nanoGPT's architecture: learned positions, LayerNorm,
GELU, tied weights, fused attention, no dropout. Hugging Face's model is GPT-2 of that size with sdpa. All
clip and update with fused AdamW as we do. nanoGPT itself has an unfused AdamW on a CPU, which is timed too.
The small size is compared with float32. The large size is compared with nanoGPT's best setting, compiled
(which needs a C++ compiler) and in bfloat16 where it is fast, and with GPT-2 in float32, its default.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.peers import peer
from benchmarks.plain import PlainBlock
from benchmarks.subject import VOCABULARY, Subject
from benchmarks.timing import Measurement, SeparateProcess, interleave, parse_options, ratio, report
from foveal.core.runtime import Precision, autocast, has_fast_bfloat16, keep_freed_memory
from foveal.tasks.config import load_config


@dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    context: int
    batch: int

    def __str__(self) -> str:
        return f"{self.layers} layers, width {self.width}, batch {self.batch} of {self.context}"


class PlainGPT(nn.Module):
    """nanoGPT's architecture in torch's layers."""

    def __init__(self, size: Size):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY.size, size.width)
        self.positions = nn.Embedding(size.context, size.width)
        self.blocks = nn.Sequential(
            *(PlainBlock(size.width, size.heads, causal=True) for _ in range(size.layers))
        )
        self.norm = nn.LayerNorm(size.width)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


class HuggingFaceGPT(nn.Module):
    """GPT-2 of the package transformers, without dropout and cache."""

    def __init__(self, size: Size):
        super().__init__()
        transformers = peer("transformers", "transformers")
        config = transformers.GPT2Config(
            vocab_size=VOCABULARY.size,
            n_positions=size.context,
            n_embd=size.width,
            n_layer=size.layers,
            n_head=size.heads,
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
            **dict.fromkeys(("bos_token_id", "eos_token_id")),
            use_cache=False,
            attn_implementation="sdpa",
        )
        self.model = transformers.GPT2LMHeadModel(config).train()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens).logits


def ours(size: Size) -> Subject:
    """Return our preset `attention` at this size."""
    settings = {
        "model.layers": size.layers,
        "model.width": size.width,
        "model.attention.heads": size.heads,
        "model.dropout": 0.0,
        "model.positions.kind": "learned",  # the plain model's
        "model.tie_embeddings": True,
        "model.projection_bias": False,
        "data.context_length": size.context,
        "data.batch_tokens": size.batch * size.context,
        "training.precision": "auto",
    }
    return Subject(load_config("attention", [f"{key}={value}" for key, value in settings.items()]))


def loop(
    network: type[nn.Module],
    size: Size,
    precision: Precision = "float32",
    compiled: bool = False,
    fused: bool = True,
) -> Callable[[], float]:
    """Return a step of the usual training loop, on our batches."""
    model, batches = network(size), ours(size).batches
    step, device = 0, torch.device("cpu")

    def forward(inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    forward = torch.compile(forward) if compiled else forward
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=fused)

    def run() -> float:
        nonlocal step
        batch = batches[step % len(batches)]
        optimizer.zero_grad()
        with autocast(device, precision):
            loss = forward(batch.inputs, batch.targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        return float(loss.detach())

    return run


def has_compiler() -> bool:
    """Return whether there is a C++ compiler, and print a line if there is none."""
    exists = shutil.which(os.environ.get("CXX", "g++")) is not None
    if not exists:
        print("no C++ compiler (g++, or $CXX): nanoGPT's best setting is left out", file=sys.stderr)
    return exists


def measure(
    size: Size, variants: dict[str, tuple[float | None, SeparateProcess]], quick: bool
) -> list[Measurement]:
    """Measure ours over each of the variants, which have a goal and a loop."""
    subject = ours(size)
    runs = {name: run for name, (_, run) in variants.items()}
    samples = interleave({"ours": subject, **runs}, rounds=7, quick=quick)
    speed = {name: f"{subject.tokens / samples.median(name):,.0f}" for name in samples.seconds}
    parameters = sum(weight.numel() for weight in PlainGPT(size).parameters())
    return [
        ratio(
            f"Transformer training over {name}, {size}",
            samples.speedup("ours", name),
            goal,
            f"{speed['ours']} against {speed[name]} tokens/s",
            f"{subject.parameters:,} against {parameters:,} parameters",
            samples.trust,
        )
        for name, (goal, _) in variants.items()
    ]


def measure_small(size: Size, quick: bool) -> list[Measurement]:
    return measure(
        size,
        {
            "a plain loop": (1.5, SeparateProcess(loop, PlainGPT, size)),
            "a plain loop, AdamW not fused": (
                None,
                SeparateProcess(loop, PlainGPT, size, "float32", False, False),
            ),
            "Hugging Face GPT-2": (1.8, SeparateProcess(loop, HuggingFaceGPT, size)),
        },
        quick,
    )


def measure_large(size: Size, quick: bool) -> list[Measurement]:
    fast = has_fast_bfloat16(torch.device("cpu"))
    precision: Precision = "bfloat16" if fast else "float32"
    variants: dict[str, tuple[float | None, SeparateProcess]] = {
        "Hugging Face GPT-2": (1.5, SeparateProcess(loop, HuggingFaceGPT, size))
    }
    if fast:
        variants["Hugging Face GPT-2 in bfloat16"] = (
            None,
            SeparateProcess(loop, HuggingFaceGPT, size, "bfloat16"),
        )
    if has_compiler():
        compiled = SeparateProcess(loop, PlainGPT, size, precision, True)
        variants[f"a plain loop in {precision}, compiled"] = (0.95, compiled)
    return measure(size, variants, quick)


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    if options.quick:
        report(
            measure_small(Size(2, 32, 2, 16, 2), True) + measure_large(Size(1, 32, 2, 16, 2), True), options
        )
    else:
        sizes = [Size(4, 128, 4, 64, batch) for batch in (12, 48)]
        measured = [measurement for size in sizes for measurement in measure_small(size, False)]
        report(measured + measure_large(Size(6, 384, 6, 256, 8), False), options)
