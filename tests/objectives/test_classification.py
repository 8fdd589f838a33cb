"""The loss of mixed sources, and the prediction for a source with several views, against their equations."""

import pytest
import torch
from torch.nn import functional as F

from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from tests.support.vector_classifier import LABELS, VectorEncoder, vector_batch, vector_logits


@pytest.fixture
def task() -> ClassificationObjective:
    return ClassificationObjective(
        EncoderWithHead(VectorEncoder(), ClassificationHead(4, 3)), LABELS, label_smoothing=0.1
    )


def test_a_mixed_loss_is_the_mixture_of_both(task):
    label, other, share = torch.tensor([0, 1]), torch.tensor([2, 1]), torch.tensor([0.8, 0.6])
    source = torch.randn(2, 4)
    result, _ = task(vector_batch(source, label=label, other=other, share=share), None)
    logs = vector_logits(task, source).log_softmax(1)
    target = torch.zeros(2, 3)
    for row in range(2):
        target[row, label[row]] += share[row]
        target[row, other[row]] += 1 - share[row]
    smoothed = 0.9 * target + 0.1 / 3
    torch.testing.assert_close(result.terms["loss"].sum, -(smoothed * logs).sum())
    assert result.metrics["loss"][0] == pytest.approx(float(-(target * logs).sum().detach()))


def test_views_are_averaged_as_probabilities(task):
    task.model.eval()
    source, label = torch.randn(6, 4), torch.tensor([0, 1])
    result, _ = task(vector_batch(source, label=label), None)
    wanted = vector_logits(task, source).softmax(1).view(2, 3, 3).mean(1)
    torch.testing.assert_close(task.predict_batch(vector_batch(source, label=label)), wanted.detach())
    nats = -wanted.log()[[0, 1], label].sum()
    torch.testing.assert_close(result.terms["loss"].sum, nats)
    torch.testing.assert_close(result.terms["total"].sum, source.sum() / 3)
    assert result.terms["loss"].weight == 2


def test_one_view_is_the_plain_loss(task):
    source, label = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    result, _ = task(vector_batch(source, label=label), None)
    wanted = F.cross_entropy(vector_logits(task, source), label, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(result.terms["loss"].sum, wanted)
