"""An attentive decoder over a Memory, trained by the trainer's step to reverse, decoded with beam search."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import OptimizerConfig
from foveal.core.memory import Memory
from foveal.core.result import ObjectiveOutput, Term
from foveal.generation.beam_search import beam_search
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.ops.padding import sequence_mask
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

START, END, LETTERS, LONGEST = 0, 1, 4, 4


class Reader(nn.Module):
    """Letters to a memory; the summary is the mean of what is present."""

    def __init__(self, width: int):
        super().__init__()
        self.embedding = Embedding(2 + LETTERS, width)
        self.mixer = Bidirectional(
            Recurrent(LSTMCell(width, width // 2)), Recurrent(LSTMCell(width, width // 2))
        )

    def forward(self, tokens: Tensor, lengths: Tensor) -> Memory:
        vectors, _ = self.mixer(self.embedding(tokens), lengths=lengths)
        mask = sequence_mask(lengths, tokens.shape[1])
        return Memory(vectors, mask, vectors.sum(1) / lengths[:, None].clamp(min=1))


class Reversal(nn.Module):
    """Encoder and head."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.reader = Reader(width)
        stack = Stack([Block(AttentionRNN("gru", width, width, width, "additive"))])
        self.head = DecoderLM(Embedding(2 + LETTERS, width), stack, width)


@dataclass(frozen=True)
class Pairs:
    sources: Tensor
    lengths: Tensor
    stream_starts: None = None

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum()) + len(self.lengths)


def pairs(rows: int) -> Pairs:
    lengths = torch.randint(1, LONGEST + 1, (rows,))
    sources = torch.randint(2, 2 + LETTERS, (rows, LONGEST)).masked_fill(~sequence_mask(lengths, LONGEST), 0)
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

    def __call__(self, batch: Pairs, carry: object) -> tuple[ObjectiveOutput, None]:
        rows = [torch.tensor(answer(batch, row)) for row in range(len(batch.lengths))]
        targets = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=END)
        inputs = F.pad(targets[:, :-1], (1, 0), value=START)
        memory = self.model.reader(batch.sources, batch.lengths)
        state = self.model.head.init_state(memory, len(rows))
        features, _, _ = self.model.head(inputs, state, batch.lengths + 1)
        nats = F.cross_entropy(self.model.head.project(features).transpose(1, 2), targets, reduction="none")
        loss = nats.where(sequence_mask(batch.lengths + 1, targets.shape[1]), 0.0).sum()
        return ObjectiveOutput({"loss": Term(loss, self.weights(batch)["loss"])}), None

    def preview(self, step: int) -> None:
        return None


def test_beam_search_reverses():
    """Trained for a little by the trainer's step; then the best hypothesis is the row reversed."""
    model = Reversal()
    task, optimizer = ReversalTask(model), Optimizer(model, OptimizerConfig(name="adam", clip_norm=1.0))
    for step in range(150):
        train_step(model, task, optimizer, [pairs(48)], [None], lr=1e-2, seed=(0, step))
    model.eval()
    torch.manual_seed(5)
    batch = pairs(30)
    with torch.no_grad():
        memory = model.reader(batch.sources, batch.lengths)
    prompts = [[START]] * len(batch.lengths)
    found = beam_search(model.head, prompts, LONGEST + 2, beam=4, best=2, memory=memory, end_tokens=[END])
    right = [list(best.tokens) == answer(batch, row) for row, (best, _) in enumerate(found)]
    assert sum(right) >= 26
    assert all(best.log_probability >= second.log_probability for best, second in found)
    # Batched over ragged memories it finds what each row alone finds.
    for row in range(3):
        one = Memory(memory.vectors[row : row + 1], memory.mask[row : row + 1], memory.summary[row : row + 1])
        (alone,) = beam_search(model.head, [[START]], LONGEST + 2, beam=4, memory=one, end_tokens=[END])
        assert alone[0].tokens == found[row][0].tokens
