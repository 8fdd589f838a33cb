"""Orders of the tokens of windows: which tokens are predicted, and after which."""

import math

import numpy as np
import pytest
import torch

from foveal.data.core.batching import ExampleBatch
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TokenizedText
from foveal.data.text.tokenizers import ByteTokenizer
from foveal.tasks.config import load_config
from foveal.tasks.permutation_lm.model import PermutationLM
from foveal.tasks.permutation_lm.objective import PermutationLMObjective
from foveal.tasks.permutation_lm.permuted_batches import PermutedBatches
from foveal.tasks.registry import task_of

CONTEXT = 32
MARKS = SpecialTokens(256)


def text(size: int = 4000) -> TokenizedText:
    tokens = np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
    return TokenizedText(tokens, ByteTokenizer())


def objective(tokens: int = 0) -> PermutationLMObjective:
    """In float64, and far from its first weights."""
    torch.manual_seed(0)
    made = PermutationLM(tokens or MARKS.vocab_size, 16, 2, 2, 24).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.uniform_(-0.5, 0.5)
    return PermutationLMObjective(made, ByteTokenizer())


def equal(one: ExampleBatch, other: ExampleBatch) -> bool:
    return all(torch.equal(one.columns[name], other.columns[name]) for name in one.columns)


@pytest.mark.parametrize("length", [8, 11, 12])
def test_the_longest_batch_without_data_is_computed_on(length: int) -> None:
    """As many places as hidden tokens, also where a sixth is no whole number."""
    sizes = ("model.width=8", "model.layers=1", "task.heads=2", f"data.context_length={length}")
    task = task_of(load_config("permutation-lm", sizes))
    task = task.bind(ByteTokenizer(), None)
    batch = task.longest_batch(3)
    result, _ = PermutationLMObjective(task.new_model(), ByteTokenizer())(batch, None)
    assert torch.isfinite(result.terms["loss"].sum)


def test_a_pure_function_of_seed_epoch_and_index() -> None:
    batches = PermutedBatches.for_training(text(), 4, CONTEXT, seed=3)
    first = batches.batch(1, 2)
    batches.batch(0, 0)
    assert equal(first, PermutedBatches.for_training(text(), 4, CONTEXT, seed=3).batch(1, 2))
    reseeded = PermutedBatches.for_training(text(), 4, CONTEXT, seed=4)
    for other in (batches.batch(2, 2), batches.batch(1, 3), reseeded.batch(1, 2)):
        assert not torch.equal(first.columns["rank"], other.columns["rank"])


def test_the_last_sixth_of_an_order_is_predicted() -> None:
    """Of 31 tokens five, in any order, never the special token, and the text stays as it is."""
    batches = PermutedBatches.for_training(text(60_000), 64, CONTEXT, seed=0)
    firsts = []
    for index in range(4):
        columns = batches.batch(0, index).columns
        ranks = columns["rank"]
        assert ranks.sort(1).values[:, -5:].tolist() == [[1, 2, 3, 4, 5]] * len(ranks)
        assert torch.equal(columns["hidden"], (ranks > 0).long())
        assert torch.equal(columns["places"], columns["hidden"].nonzero()[:, 1].view(-1, 5))
        assert columns["source"] is columns["target"]
        assert not ranks[:, -1].any()
        firsts.append((ranks == 1).nonzero()[:, 1])
    counts = torch.cat(firsts).bincount(minlength=CONTEXT)[:-1]
    assert (counts > 0).all()
    assert counts.max() < 4 * counts.float().mean()


def test_held_out_text_is_whole_and_the_same_each_time() -> None:
    """Rows of unequal length and none."""
    whole = text(533)
    batches = PermutedBatches.for_evaluation(whole, 5, CONTEXT)
    seen = 0
    for index in range(batches.per_epoch):
        batch = batches.batch(0, index)
        assert equal(batch, batches.batch(0, index))
        for row, length in enumerate(batch.lengths["source"].tolist()):
            count = max(1, round((length - 1) / 6)) if length > 1 else 0
            hidden = batch.columns["hidden"][row]
            assert int(hidden.sum()) == count
            assert hidden.nonzero()[:, 0].tolist() == batch.columns["places"][row, :count].tolist()
            seen += length - 1
    assert seen == len(whole.tokens) - 1


def test_the_loss_is_that_of_each_token_after_those_before_it_in_the_order() -> None:
    """Row by row and token by token, with only the tokens that may be seen."""
    made, batch = objective(), PermutedBatches.for_evaluation(text(200), 3, CONTEXT).batch(0, 2)
    assert len(set(batch.lengths["source"].tolist())) > 1
    expected = []
    for row, length in enumerate(batch.lengths["source"].tolist()):
        tokens, ranks = batch.columns["source"][row, :length], batch.columns["rank"][row, :length]
        for place in ranks.nonzero()[:, 0].tolist():
            unseen = ranks >= ranks[place]
            logits = made.model(tokens.where(~unseen, 0)[None], ranks[None], torch.tensor([[place]]))
            expected.append(-logits[0, 0].log_softmax(0)[tokens[place]])
    result, carry = made(batch, None)
    term = result.terms["loss"]
    torch.testing.assert_close(term.sum, torch.stack(expected).sum().to(term.sum.dtype), rtol=1e-6, atol=1e-6)
    assert term.weight == len(expected) == int(batch.columns["hidden"].sum())
    assert carry is None


def test_it_learns_what_stands_around() -> None:
    """In abcdabcd ... each token follows from its neighbors; the first loss is that of chance."""
    tokens = np.tile(np.arange(97, 101, dtype=np.uint8), 200)
    torch.manual_seed(0)
    model = PermutationLM(MARKS.vocab_size, 16, 1, 2, 32)
    for name, weight in model.named_parameters():
        if "attention." in name and name.endswith("weight"):
            torch.nn.init.normal_(weight, std=0.3)  # so small a model would take long to leave chance
    made = PermutationLMObjective(model, ByteTokenizer())
    batches = PermutedBatches.for_training(TokenizedText(tokens, ByteTokenizer()), 8, CONTEXT, seed=0)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for step in range(180):
        result, _ = made(batches.batch(*divmod(step, batches.per_epoch)), None)
        term = result.terms["loss"]
        losses.append(float(term.sum.detach()) / term.weight)
        adam.zero_grad()
        (term.sum / term.weight).backward()
        adam.step()
    right, total = result.metrics["accuracy"]
    assert losses[0] == pytest.approx(math.log(MARKS.vocab_size), abs=0.1)
    assert right / total > 0.9
