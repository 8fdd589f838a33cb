"""A recurrent cell of one's own, in one file: the equations, and it trains, writes and is tested.

    python examples/own_cell.py FILE.txt

`project` is the part of the equations that needs the input alone, `step` the rest. Everything else (ragged
batches, truncated backpropagation, generation, beam search) is the same for every cell. Its tests are one
row in `tests/layers/rows.py`.
"""

import sys

import torch
from torch import Tensor, nn

from foveal.build import build_task, training_order
from foveal.config import from_tables
from foveal.data.prepare import prepare
from foveal.generation.sampling import Sampling
from foveal.generation.text import collect, generate_text
from foveal.heads.generate import Generator
from foveal.layers.block import Block, Stack
from foveal.layers.embedding import Embedding
from foveal.layers.recurrent import Cell, Recurrent
from foveal.training.optim import Optimizer
from foveal.training.step import train_step


class MinimalGated(Cell):
    """The minimal gated unit (Zhou et al. 2016): a GRU whose one gate both forgets and resets.

    `f = sigmoid(W_f x + U_f h + b_f)`, `n = tanh(W_n x + U_n (f * h) + b_n)`, `h_t = (1 - f) * h + f * n`.
    """

    def __init__(self, d_in: int, width: int):
        super().__init__()
        self.d_in, self.d_out, self.sizes = d_in, width, {"h": width}
        self.input = nn.Linear(d_in, 2 * width)
        self.forget = nn.Linear(width, width, bias=False)
        self.new = nn.Linear(width, width, bias=False)

    def reset_parameters(self) -> None:
        for linear in (self.input, self.forget, self.new):
            linear.reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return self.input(x)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        h = state["h"]
        p_f, p_n = p.chunk(2, 1)
        f = (p_f + self.forget(h)).sigmoid()
        n = (p_n + self.new(f * h)).tanh()
        h = (1 - f) * h + f * n
        return h, {"h": h}


def main(path: str, steps: int = 500, width: int = 128) -> str:
    """Train on a text file, its state carried from chunk to chunk; then write."""
    config = from_tables(
        {"data": {"order": "streams", "context": 64, "batch_tokens": 2048}, "optimizer": {"rate": 5e-3}}
    )
    data = prepare(path, config.data, None, None, print)
    torch.manual_seed(config.training.seed)
    stack = Stack([Block(Recurrent(MinimalGated(width, width)))])
    model = Generator(Embedding(data.tokenizer.size, width), stack, width)
    task, optimizer = build_task(config, model, data.tokenizer), Optimizer(model, config.optimizer)
    order = training_order(config, data.train)

    carries = [None]
    for step in range(steps):
        batch = order.batch(*divmod(step, order.per_epoch))
        rate = config.optimizer.rate * (1 - step / steps)
        done, carries = train_step(model, task, optimizer, [batch], carries, rate=rate, seed=(0, step))
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: {done.metrics['loss']:.3f} nats per character")

    model.eval()
    sampling = Sampling(temperature=0.8)
    return collect(generate_text(model, data.tokenizer, ["The "], 200, sampling))[0].text


if __name__ == "__main__":
    print(main(sys.argv[1]))
