"""A recurrent cell that attends to a Memory, trained to reverse and decoded with beam search.

The encoder is the bidirectional mixer of the file beside this; the head is the ordinary one.
"""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import OptimizerConfig
from foveal.core.memory import Memory
from foveal.core.result import Result, Term
from foveal.core.state import map_state, reset, select
from foveal.generation.beam import beam_search
from foveal.heads.generate import Generator
from foveal.layers.block import Block, Stack
from foveal.layers.embedding import Embedding
from foveal.ops.padding import present, zero_padding
from foveal.ops.recurrence import gru_step_before, recur
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.contract.test_bidirectional import Bidirectional

START, END, LETTERS, LONGEST = 0, 1, 4, 4


class Attentive(nn.Module):
    """A GRU whose input is joined by a context from the memory at every step (Bahdanau et al. 2015).

    `e_ti = v . tanh(W s_(t-1) + U h_i)`, `a_t = softmax(e_t)` over what is present, `c_t = sum_i a_ti h_i`,
    `s_t = GRU([x_t; c_t], s_(t-1))`. The score is an MLP: a linear one would not depend on s (E6).
    The state has the memory beside `s`: its keys `U h`, values and mask, made once and constant.
    """

    bounded = True

    def __init__(self, d_in: int, width: int, memory: int):
        super().__init__()
        self.d_in, self.d_out, self.width = d_in, width, width
        self.first = nn.Linear(memory, width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(memory, width)
        self.score = nn.Parameter(torch.randn(width) / width**0.5)
        self.project_input = nn.Linear(d_in, 3 * width)
        self.project_context = nn.Linear(memory, 3 * width, bias=False)
        self.weight_hidden = nn.Parameter(torch.randn(3 * width, width) / width**0.5)

    def init_state(self, batch, capacity=None, memory=None):
        if memory is None:
            raise ValueError("an attentive cell starts from a memory")
        vectors, mask = memory.vectors, memory.mask
        return {
            "s": self.first(memory.summary).tanh(),
            "keys": self.key(vectors),
            "values": vectors,
            "mask": mask,
        }

    def forward(self, x, state=None, *, lengths=None):
        if state is None:
            raise ValueError("an attentive cell can't go on from no state: begin with init_state")
        x = zero_padding(x, lengths)
        # Only s goes through the recurrence; the memory stands beside it, the same at every step.
        keys, values, mask = state["keys"], state["values"], state["mask"]

        def step(p: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
            scores = (self.query(s)[:, None] + keys).tanh() @ self.score
            weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(1)
            context = (weights[:, None] @ values).squeeze(1)
            s = gru_step_before(p + self.project_context(context), s, self.weight_hidden)
            return s, s

        y, last = recur(step, self.project_input(x), state["s"], lengths)
        return zero_padding(y, lengths), state | {"s": last}


class Reader(nn.Module):
    """Letters to a memory; the summary is the mean of what is present."""

    def __init__(self, width: int):
        super().__init__()
        self.embedding = Embedding(2 + LETTERS, width)
        self.mixer = Bidirectional(width, width // 2)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Memory:
        vectors, _ = self.mixer(self.embedding(tokens), lengths=lengths)
        mask = present(lengths, tokens.shape[1])
        return Memory(vectors, mask, vectors.sum(1) / lengths[:, None].clamp(min=1))


class Reversal(nn.Module):
    """Encoder and head."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.reader = Reader(width)
        stack = Stack([Block(Attentive(width, width, width))])
        self.head = Generator(Embedding(2 + LETTERS, width), stack, width)


@dataclass(frozen=True)
class Pairs:
    sources: Tensor
    lengths: Tensor
    fresh: None = None

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum()) + len(self.lengths)


def pairs(rows: int) -> Pairs:
    lengths = torch.randint(1, LONGEST + 1, (rows,))
    sources = torch.randint(2, 2 + LETTERS, (rows, LONGEST)).masked_fill(~present(lengths, LONGEST), 0)
    return Pairs(sources, lengths)


def answer(batch: Pairs, row: int) -> list[int]:
    return [*reversed(batch.sources[row, : batch.lengths[row]].tolist()), END]


class ReversalTask:
    """Every token of the reversed row, and the end after it."""

    def __init__(self, model: Reversal):
        self.model = model

    def weights(self, batch: Pairs) -> dict[str, float]:
        return {"loss": float(batch.tokens)}

    def start(self, batch: Pairs) -> None:
        return None

    def __call__(self, batch: Pairs, carry: object) -> tuple[Result, None]:
        rows = [torch.tensor(answer(batch, row)) for row in range(len(batch.lengths))]
        targets = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=END)
        inputs = F.pad(targets[:, :-1], (1, 0), value=START)
        memory = self.model.reader(batch.sources, batch.lengths)
        state = self.model.head.start(memory, len(rows))
        features, _, _ = self.model.head(inputs, state, batch.lengths + 1)
        nats = F.cross_entropy(self.model.head.project(features).transpose(1, 2), targets, reduction="none")
        loss = nats.where(present(batch.lengths + 1, targets.shape[1]), 0.0).sum()
        return Result({"loss": Term(loss, self.weights(batch)["loss"])}), None

    def preview(self, step: int) -> None:
        return None


def memory_of(rows: int, dtype: torch.dtype = torch.float64) -> Memory:
    lengths = torch.tensor([4, 2, 3][:rows])
    vectors = zero_padding(torch.randn(rows, 4, 5, dtype=dtype), lengths)
    return Memory(vectors, present(lengths, 4), vectors.sum(1))


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_laws_over_a_memory():
    """Chunks, padding, rows alone, select and reset; the memory is carried along unchanged."""
    mixer, memory = Attentive(5, 6, 5).double(), memory_of(3)
    start = mixer.init_state(3, memory=memory)
    x, lengths = torch.randn(3, 7, 5, dtype=torch.float64), torch.tensor([7, 2, 0])
    whole, last = mixer(x, start)
    first, middle = mixer(x[:, :3], start)
    rest, end = mixer(x[:, 3:], middle)
    close(torch.cat([first, rest], 1), whole)
    map_state(close, end, last)
    padded = x.clone()
    padded[1, 2:], padded[2] = torch.nan, torch.nan
    y, after = mixer(padded, start, lengths=lengths)
    close(y[1, :2], whole[1, :2])
    assert y[1, 2:].eq(0).all()
    assert torch.equal(after["s"][2], start["s"][2])
    rows = torch.tensor([2, 0, 2])
    close(mixer(x[rows], select(start, rows))[0], whole[rows])
    renewed = reset(last, torch.tensor([True, False, True]), start)
    close(renewed["s"], torch.stack([start["s"][0], last["s"][1], start["s"][2]]))
    row = torch.tensor([1])
    alone = Memory(memory.vectors[row, :2], memory.mask[row, :2], memory.summary[row])
    close(mixer(x[row], mixer.init_state(1, memory=alone))[0], whole[row])


def test_no_memory_no_start():
    mixer = Attentive(5, 6, 5)
    with pytest.raises(ValueError, match="memory"):
        mixer.init_state(3)
    with pytest.raises(ValueError, match="init_state"):
        mixer(torch.randn(3, 2, 5))


def test_beam_search_reverses():
    """Trained for a little by the trainer's step; then the best hypothesis is the row reversed."""
    model = Reversal()
    task, optimizer = ReversalTask(model), Optimizer(model, OptimizerConfig(name="adam", clip_norm=1.0))
    for step in range(150):
        train_step(model, task, optimizer, [pairs(48)], [None], rate=1e-2, seed=(0, step))
    model.eval()
    torch.manual_seed(5)
    batch = pairs(30)
    with torch.no_grad():
        memory = model.reader(batch.sources, batch.lengths)
    prompts = [[START]] * len(batch.lengths)
    found = beam_search(model.head, prompts, LONGEST + 2, beam=4, best=2, memory=memory, end=[END])
    right = [list(best.tokens) == answer(batch, row) for row, (best, _) in enumerate(found)]
    assert sum(right) >= 26
    assert all(best.log_probability >= second.log_probability for best, second in found)
    # Batched over ragged memories it finds what each row alone finds.
    for row in range(3):
        one = Memory(memory.vectors[row : row + 1], memory.mask[row : row + 1], memory.summary[row : row + 1])
        (alone,) = beam_search(model.head, [[START]], LONGEST + 2, beam=4, memory=one, end=[END])
        assert alone[0].tokens == found[row][0].tokens
