"""Training speed of a small Transformer: our `attention` preset in bfloat16 against a plain float32 loop.

4 layers, width 128, 4 heads, context 64, no dropout. The other side is a GPT-2 in plain PyTorch, as is
usual in small code bases: learned positions, LayerNorm, GELU, tied weights, fused attention, fused AdamW.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.subject import VOCABULARY, Subject
from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.config import load_config

LAYERS, WIDTH, HEADS, CONTEXT = 4, 128, 4, 64


class PlainBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class PlainGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY.size, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(PlainBlock() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def plain_loop(model: PlainGPT, subject: Subject) -> Callable[[], float]:
    """Eager training in float32 on the subject's batches."""
    step = 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=True)

    def run() -> float:
        nonlocal step
        batch = subject.batches[step % len(subject.batches)]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        return float(loss.detach())

    return run


def measure(batch: int, quick: bool) -> Figure:
    settings = {
        "model.layers": LAYERS,
        "model.width": WIDTH,
        "model.attention.heads": HEADS,
        "model.dropout": 0.0,
        "data.context": CONTEXT,
        "data.batch_tokens": batch * CONTEXT,
        "training.precision": "bfloat16",
    }
    ours = Subject(load_config("attention", [f"{key}={value}" for key, value in settings.items()]))
    plain = PlainGPT()
    samples = interleave({"ours": ours, "plain": plain_loop(plain, ours)}, quick=quick)
    speeds = [f"{ours.tokens / samples.median(name):,.0f}" for name in ("ours", "plain")]
    return ratio(
        f"Transformer training over a plain loop, batch {batch} of {CONTEXT}",
        samples.speedup("ours", "plain"),
        1.2,
        f"{speeds[0]} against {speeds[1]} tokens/s",
        f"{ours.parameters:,} against {sum(weight.numel() for weight in plain.parameters()):,} parameters",
        samples.trust,
    )


if __name__ == "__main__":
    given = options(__doc__)
    report([measure(batch, given.quick) for batch in ((2,) if given.quick else (12, 48))], given)
