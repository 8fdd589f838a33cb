"""The loss of mixed sources, and the answer to a source of several views, against their equations."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.data.batching import ExampleBatch
from foveal.encoders.remember import remember
from foveal.heads.classify import Classifier
from foveal.models.encoder import Encoded
from foveal.models.ensemble import Ensemble
from foveal.tasks.classify import ClassifyTask

LABELS = ("a", "b", "c")


class Given(nn.Module):
    """A memory of one vector, what it is given; and the sum of each row as a further term."""

    width, aux_names = 4, ("total",)

    def forward(self, x: Tensor, lengths: None = None) -> tuple[Memory, dict[str, Tensor]]:
        return remember(x[:, None], None, "grid", "mean", (1, 1)), {"total": x.sum(1)}


@pytest.fixture
def task() -> ClassifyTask:
    return ClassifyTask(Encoded(Given(), Classifier(4, 3)), LABELS, smoothing=0.1)


def batch(source: Tensor, **columns: Tensor) -> ExampleBatch:
    rows = len(columns["label"])
    return ExampleBatch(torch.arange(rows), {"source": source, **columns}, {}, rows)


def logits(task: ClassifyTask, source: Tensor) -> Tensor:
    return F.linear(source, task.model.head.projection.weight)


def test_a_mixed_loss_is_the_mixture_of_both(task):
    label, other, share = torch.tensor([0, 1]), torch.tensor([2, 1]), torch.tensor([0.8, 0.6])
    source = torch.randn(2, 4)
    result, _ = task(batch(source, label=label, other=other, share=share), None)
    logs = logits(task, source).log_softmax(1)
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
    result, _ = task(batch(source, label=label), None)
    wanted = logits(task, source).softmax(1).view(2, 3, 3).mean(1)
    torch.testing.assert_close(task.predict(batch(source, label=label)), wanted.detach())
    nats = -wanted.log()[[0, 1], label].sum()
    torch.testing.assert_close(result.terms["loss"].sum, nats)
    torch.testing.assert_close(result.terms["total"].sum, source.sum() / 3)
    assert result.terms["loss"].weight == 2


def test_one_view_is_the_plain_loss(task):
    source, label = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    result, _ = task(batch(source, label=label), None)
    wanted = F.cross_entropy(logits(task, source), label, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(result.terms["loss"].sum, wanted)


@pytest.fixture
def ensemble() -> ClassifyTask:
    members = [Encoded(Given(), Classifier(4, 3)) for _ in range(3)]
    return ClassifyTask(Ensemble(members), LABELS, smoothing=0.1)


def alone(task: ClassifyTask) -> list[ClassifyTask]:
    return [ClassifyTask(member, LABELS, smoothing=0.1) for member in task.model.members]


def test_each_member_learns_from_its_rows_as_if_it_were_alone(ensemble):
    given = batch(torch.randn(7, 4), label=torch.tensor([0, 1, 2, 0, -100, 2, 1]))
    result, _ = ensemble(given, None)
    assert ensemble.weights(given) == {name: term.weight for name, term in result.terms.items()}
    assert ensemble.weights(given) == {"loss": 6 / 3, "total": 7 / 3}  # one row has no label
    result.terms["loss"].sum.backward()
    weights = [member.head.projection.weight for member in ensemble.model.members]
    found = [weight.grad.clone() for weight in weights]
    ensemble.model.zero_grad()
    sums, right = [], 0
    for place, (task, weight, gradient) in enumerate(zip(alone(ensemble), weights, found, strict=True)):
        one, _ = task(given.take(torch.arange(place, 7, 3)), None)
        one.terms["loss"].sum.backward()
        torch.testing.assert_close(weight.grad, gradient)
        sums.append(one.terms["loss"].sum)
        right += one.metrics["accuracy"][0]
    torch.testing.assert_close(result.terms["loss"].sum, sum(sums))
    torch.testing.assert_close(result.terms["total"].sum, given.columns["source"].sum())
    assert result.metrics["accuracy"] == (right, 7)


def test_members_without_a_row_learn_nothing(ensemble):
    result, _ = ensemble(batch(torch.randn(1, 4), label=torch.tensor([2])), None)
    result.terms["loss"].sum.backward()
    given = [member.head.projection.weight.grad is not None for member in ensemble.model.members]
    assert given == [True, False, False]


def test_members_answer_by_the_mean_of_their_probabilities(ensemble):
    label = torch.tensor([0, 1])
    given = batch(torch.randn(6, 4), label=label)  # three views of each
    chances = torch.stack([task.predict(given) for task in alone(ensemble)]).mean(0)
    torch.testing.assert_close(ensemble.predict(given), chances)
    ensemble.model.eval()
    result, _ = ensemble(given, None)
    torch.testing.assert_close(result.terms["loss"].sum, -chances.log()[[0, 1], label].sum())
    assert result.metrics["accuracy"] == (int(chances.argmax(1).eq(label).sum()), 2)
    torch.testing.assert_close(result.terms["total"].sum, given.columns["source"].sum())  # a third, thrice


def test_the_first_member_keeps_the_names_of_a_model_alone(ensemble):
    names = {"head.projection.weight", "head.projection.bias"}
    places = ("", "others.0.", "others.1.")
    assert set(ensemble.model.state_dict()) == {place + name for place in places for name in names}
