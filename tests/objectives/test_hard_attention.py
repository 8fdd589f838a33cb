"""Hard attention: the mean of REINFORCE's estimate is the gradient of the expected log-likelihood."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import ConfigError, ModelConfig
from foveal.core.memory import Memory
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.length_limit import LengthLimit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead
from foveal.models.mixer_settings import stack_mixers
from foveal.objectives.hard_attention import HardAttentionObjective, log_prob_and_entropy
from foveal.ops.attention.hard_attention import sample_position
from tests.support.mixer_rows import randomize

S, M, WORDS, LAYERS = 3, 4, 5, 2
TARGET = [2, 0, SpecialTokens(WORDS).eos]
HELD = torch.tensor([[True, True, False], [False, True, True]])


class Given(nn.Module):
    """A source is the number of one of two memories of three vectors, of which one is masked out."""

    aux_names: tuple[str, ...] = ()
    width = M

    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(2, S, M))

    def forward(self, source: Tensor, lengths: Tensor | None) -> tuple[Memory, dict[str, Tensor]]:
        which = source[:, 0].long()
        mask = HELD[which]
        vectors = self.vectors[which] * mask[:, :, None]
        return Memory(vectors, mask, vectors.sum(1) / 2), {}


@pytest.fixture
def model() -> EncoderWithHead:
    torch.manual_seed(0)
    config = ModelConfig.model_validate(
        {
            "mixers": "attention-rnn",
            "layers": LAYERS,
            "width": 6,
            "embedding_width": 3,
            "attention_rnn": {"hard": True},
        }
    )
    encoded = EncoderWithHead(Given(), decoder(config, SpecialTokens(WORDS).vocab_size, 8, M))
    randomize(encoded, 1.2)
    return encoded


def batch_of(rows: int) -> ExampleBatch:
    """By turns of the one memory and of the other, whose target has a token less."""
    targets, lengths = torch.tensor([TARGET]).repeat(rows, 1), torch.full((rows,), 3)
    lengths[1::2] = 2
    columns = {"source": torch.arange(rows)[:, None] % 2.0, "target": targets}
    return ExampleBatch(torch.arange(rows), columns, {"target": lengths}, lengths)


def task_of(model: EncoderWithHead) -> HardAttentionObjective:
    return HardAttentionObjective(model, SpecialTokens(WORDS), LengthLimit.from_lengths(5, 0.0, 8))


def expectation(model: EncoderWithHead, indices: int, length: int) -> Tensor:
    """`sum_s p(s) log p(y | s)` of one memory, over every path of places of all layers, step by step."""
    head, mixers = model.head, [block.mixer for block in model.head.stack.blocks]
    vectors = model.encoder.vectors[indices][HELD[indices]]
    total = torch.zeros(())
    for path in product(product(range(len(vectors)), repeat=LAYERS), repeat=length):
        h = [(mixer.first.weight @ vectors.mean(0) + mixer.first.bias).tanh() for mixer in mixers]
        log_path, log_text = torch.zeros(()), torch.zeros(())
        for places, before, token in zip(
            path, [SpecialTokens(WORDS).bos, *TARGET], TARGET[:length], strict=False
        ):
            x = head.embedding.table[before]
            for layer, (mixer, place) in enumerate(zip(mixers, places, strict=True)):
                score, cell = mixer.score, mixer.recurrent.cell
                e = [(score.query.weight @ h[layer] + score.key(v)).tanh() @ score.weight for v in vectors]
                log_path = log_path + torch.stack(e).log_softmax(0)[place]
                joined = torch.cat([x, vectors[place]])
                y, _ = cell.step(cell.project(joined[None, None])[:, 0], {"h": h[layer][None]})
                x = h[layer] = y[0]
            log_text = log_text + head.project(head.norm(x)).log_softmax(0)[token]
        total = total + log_path.exp() * log_text
    return total


def test_the_estimate_is_right_on_average(model: EncoderWithHead) -> None:
    """Of two memories and two lengths in one batch, by two layers that look."""
    rows = 60_000
    expected = (expectation(model, 0, 3) + expectation(model, 1, 2)) / 2
    wanted = torch.autograd.grad(expected, [*model.parameters()], allow_unused=True)
    model.train()
    result, _ = task_of(model)(batch_of(rows), None)
    nats, _ = result.metrics["loss"]
    assert abs(nats / rows / -float(expected.detach()) - 1) < 0.01
    for names, right in ((("loss", "places"), True), (("loss",), False)):
        objective = torch.stack([result.terms[name].sum for name in names]).sum() / rows
        found = torch.autograd.grad(objective, [*model.parameters()], retain_graph=True, allow_unused=True)
        name_of = {id(part): name for name, part in model.named_parameters()}
        for part, a, b in zip(model.parameters(), found, wanted, strict=True):
            a, b = (torch.zeros_like(part) if one is None else one for one in (a, b))
            off = float((a + b).norm()) / max(float(b.norm()), 1e-3)
            if right:
                assert off < 0.12, (name_of[id(part)], off)
            elif name_of[id(part)].endswith("score.weight"):
                assert off > 0.5  # the likelihood alone teaches no score


def test_the_two_draws_of_a_row_are_compared(model: EncoderWithHead, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, task = 5, task_of(model.train())
    followed: list[Any] = []
    follow = task.teacher_forcing

    def record_result(*given: Any) -> Any:
        followed.append(follow(*given))
        return followed[0]

    monkeypatch.setattr(task, "teacher_forcing", record_result)
    batch = batch_of(rows)
    result, _ = task(batch, None)
    features, state, _ = followed[0]
    log_p = model.head.project(features).log_softmax(2)
    log_chance = sum(block["drawn"][:, 0] for block in state["blocks"])
    total = torch.zeros(())
    for row, length in enumerate(batch.lengths["target"].tolist()):
        got = [
            sum(log_p[draw, t, token] for t, token in enumerate(TARGET[:length])).detach()
            for draw in (row, row + rows)
        ]
        total = total - (got[0] - got[1]) * (log_chance[row] - log_chance[row + rows]) / 2
    torch.testing.assert_close(result.terms["places"].sum, total)
    assert abs(float(total.detach())) > 1e-3


def test_a_draw_knows_nothing_of_the_other(model: EncoderWithHead) -> None:
    """Both of a source's draws have the chances of the scores."""
    torch.manual_seed(2)
    e = torch.tensor([[0.3, -1.0, 0.8, 5.0]]).repeat(50_000, 1)
    seen = torch.tensor([True, True, True, False]).expand_as(e)
    place, log_chance, entropy = sample_position(e, seen, sample=True)
    p = e[0, :3].softmax(0)
    assert torch.allclose(place.bincount(minlength=4) / len(e), F.pad(p, (0, 1)), atol=0.01)
    assert torch.allclose(log_chance, p.log()[place])
    assert torch.allclose(entropy, -(p * p.log()).sum().expand_as(entropy))
    assert sample_position(e[:3], seen[:3], sample=False).position.tolist() == [2, 2, 2]
    nothing = sample_position(e[:3], ~seen[:3] & False, sample=True)
    assert nothing.log_prob.isfinite().all()


def test_nothing_is_drawn_where_it_is_measured(model: EncoderWithHead) -> None:
    task = task_of(model.eval())
    results = [task(batch_of(4), None)[0] for _ in range(2)]
    assert results[0].metrics == results[1].metrics
    assert results[0].terms.keys() == {"loss"}
    assert [len(one[0].tokens) > 0 for one in task.beam_decode(batch_of(2), beam=3)] == [True, True]


def test_padding_draws_nothing(model: EncoderWithHead) -> None:
    """A row's chances are summed over its own tokens."""
    model.train()
    batch = batch_of(2)
    memory, _ = model.encoder(batch.columns["source"], None)
    _, state, _ = task_of(model).teacher_forcing(memory, batch.columns["target"], torch.tensor([3, 0]))
    log_chance, entropy = log_prob_and_entropy(state).detach().unbind(1)
    assert log_chance[0] < 0 < entropy[0]
    assert (float(log_chance[1]), float(entropy[1])) == (0.0, 0.0)


@pytest.mark.parametrize("score", ["initial-state", "every-step"])
def test_what_is_refused(score: str) -> None:
    with pytest.raises(
        (ConfigError, ValueError),
        match=f"hard=true samples a position by its score, but score={score} gives none",
    ):
        stack_mixers(ModelConfig(mixers="attention-rnn", attention_rnn={"hard": True, "score": score}))
    assert "drawn" in AttentionRNN("gru", 3, 4, 4, "dot", hard=True).shapes
