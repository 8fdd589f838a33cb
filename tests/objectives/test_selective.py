"""What is learned of a batch is what a small model finds hard; evaluation knows nothing of it."""

import pytest
import torch
from torch.nn import functional as F

from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.selective import ModelWithProxy, SelectiveObjective
from tests.support.gradients import gradient_of
from tests.support.vector_classifier import LABELS, VectorEncoder, vector_batch, vector_logits


@pytest.fixture
def task() -> SelectiveObjective:
    large, proxy = (EncoderWithHead(VectorEncoder(), ClassificationHead(4, 3)) for _ in range(2))
    return SelectiveObjective(ModelWithProxy(large, proxy), LABELS, 0.1, select_fraction=0.5)


def sources(count: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(count, 4, requires_grad=True), torch.arange(count) % 3


def test_the_hardest_for_the_proxy_are_learned_by_both(task):
    source, label = sources()
    told = torch.randn(7, 2)
    given = vector_batch(source, label=label, other=label.flip(0), share=told[:, 0].sigmoid())
    result, _ = task(given, None)
    nats = task.proxy.per_example_loss(given).detach()
    hardest = nats.argsort(descending=True)[:4]  # half of seven, rounded
    assert result.terms["proxy"].weight == result.terms["loss"].weight == 4
    assert task.weights(given) == {name: term.weight for name, term in result.terms.items()}
    torch.testing.assert_close(result.terms["proxy"].sum, nats[hardest].sum())
    alone = {name: column[hardest] for name, column in given.columns.items()}
    plain, _ = ClassificationObjective(task.model, LABELS, 0.1)(
        vector_batch(alone.pop("source"), **alone), None
    )
    for name, term in plain.terms.items():
        torch.testing.assert_close(result.terms[name].sum, term.sum)
    assert result.metrics["accuracy"] == plain.metrics["accuracy"]


def test_the_proxy_is_not_taught_by_the_model_nor_the_model_by_it(task):
    source, label = sources()
    result, _ = task(vector_batch(source, label=label), None)
    result.terms["proxy"].sum.backward(retain_graph=True)
    large, proxy = task.model.head.projection.weight, task.model.proxy.head.projection.weight
    assert large.grad is None
    assert proxy.grad.any()
    before = proxy.grad.clone()
    result.terms["loss"].sum.backward()
    assert gradient_of(large).any()
    assert torch.equal(proxy.grad, before)


def test_in_evaluation_every_source_counts(task):
    task.model.eval()
    source, label = sources()
    label[0] = -100  # a label that training has not: no loss, and wrong
    given = vector_batch(source, label=label)
    plain = ClassificationObjective(task.model, LABELS, 0.1)
    found, wanted = task(given, None)[0], plain(given, None)[0]
    assert found.metrics == wanted.metrics
    assert found.terms.keys() == wanted.terms.keys()
    assert task.weights(given) == plain.weights(given) == {"loss": 6, "total": 7}
    torch.testing.assert_close(task.predict_batch(given), vector_logits(task, source).softmax(1).detach())


def test_of_a_single_source_it_is_learned(task):
    source, label = sources(1)
    result, _ = task(vector_batch(source, label=label), None)
    wanted = F.cross_entropy(vector_logits(task, source), label, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(result.terms["loss"].sum, wanted)
