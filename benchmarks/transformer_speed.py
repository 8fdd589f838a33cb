"""Training speed of Transformers: our `attention` preset against plain loops and Hugging Face.

Ours is in bfloat16 where the machine multiplies it, as `foveal train` has it; the others run in processes of
their own, without its setting of the allocator.

Batches are the same. The plain loop trains nanoGPT's architecture: learned positions, LayerNorm, GELU, tied
weights, fused attention, no dropout. Hugging Face's is GPT-2 of that size with sdpa. All others clip and
update with fused AdamW as we do; nanoGPT itself has its AdamW unfused on a CPU, which is timed too.
The small size is held against float32, the large one against nanoGPT's best setting, compiled (which needs a
C++ compiler) and in bfloat16 where that is fast, and against GPT-2 in float32, as its loop is by default.
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
from benchmarks.timing import Apart, Figure, interleave, options, ratio, report
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
    """GPT-2 by transformers, without dropout and without a cache."""

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
    """The usual training loop, on our batches."""
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


def compiler() -> bool:
    found = shutil.which(os.environ.get("CXX", "g++")) is not None
    if not found:
        print("no C++ compiler (g++, or what CXX names): nanoGPT's best setting is left out", file=sys.stderr)
    return found


def figures(size: Size, variants: dict[str, tuple[float | None, Apart]], quick: bool) -> list[Figure]:
    """Ours over each of the variants: a goal, and a loop."""
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


def small(size: Size, quick: bool) -> list[Figure]:
    return figures(
        size,
        {
            "a plain loop": (1.5, Apart(loop, PlainGPT, size)),
            "a plain loop, AdamW not fused": (None, Apart(loop, PlainGPT, size, "float32", False, False)),
            "Hugging Face GPT-2": (1.8, Apart(loop, HuggingFaceGPT, size)),
        },
        quick,
    )


def large(size: Size, quick: bool) -> list[Figure]:
    fast = has_fast_bfloat16(torch.device("cpu"))
    precision: Precision = "bfloat16" if fast else "float32"
    variants: dict[str, tuple[float | None, Apart]] = {
        "Hugging Face GPT-2": (1.5, Apart(loop, HuggingFaceGPT, size))
    }
    if fast:
        variants["Hugging Face GPT-2 in bfloat16"] = (None, Apart(loop, HuggingFaceGPT, size, "bfloat16"))
    if compiler():
        compiled = Apart(loop, PlainGPT, size, precision, True)
        variants[f"a plain loop in {precision}, compiled"] = (0.95, compiled)
    return figures(size, variants, quick)


if __name__ == "__main__":
    given = options(__doc__)
    keep_freed_memory()
    if given.quick:
        report(small(Size(2, 32, 2, 16, 2), True) + large(Size(1, 32, 2, 16, 2), True), given)
    else:
        sizes = [Size(4, 128, 4, 64, batch) for batch in (12, 48)]
        rows = [figure for size in sizes for figure in small(size, False)]
        report(rows + large(Size(6, 384, 6, 256, 8), False), given)
