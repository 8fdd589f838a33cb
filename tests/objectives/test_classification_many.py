"""With many classes a row's logits are not kept, and nothing else changes."""

import pytest
import torch
from torch import Tensor

from foveal.core.result import ObjectiveOutput
from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import EncoderWithHead
from foveal.objectives import classification
from foveal.objectives.classification import ClassificationObjective
from tests.support.vector_classifier import VectorEncoder, vector_batch

ROWS, CLASSES = 300, 2000


def trained(training: bool) -> tuple[ObjectiveOutput, list[Tensor], int]:
    """The output, the gradients, and the size of the largest tensor that is kept for them."""
    torch.manual_seed(1)
    head = ClassificationHead(VectorEncoder.width, CLASSES)
    model = EncoderWithHead(VectorEncoder(), head).train(training)
    labels = tuple(map(str, range(CLASSES)))
    objective = ClassificationObjective(model, labels, label_smoothing=0.1)
    batch = vector_batch(torch.randn(ROWS, VectorEncoder.width), label=torch.randint(CLASSES, (ROWS,)))
    batch.columns["label"][7] = -100
    largest = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output, _ = objective(batch, None)
    output.terms["loss"].sum.backward()
    return (
        output,
        [weight.grad for weight in head.projection.parameters() if weight.grad is not None],
        largest,
    )


@pytest.mark.parametrize("training", [True, False])
def test_chunks_of_rows_change_nothing(training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    in_chunks, gradients, largest = trained(training)
    monkeypatch.setattr(classification, "MIN_CHUNKED_CLASSES", CLASSES + 1)
    whole, expected, largest_whole = trained(training)
    assert largest <= VectorEncoder.width * CLASSES < ROWS * CLASSES <= largest_whole
    assert in_chunks.metrics["loss"] == pytest.approx(whole.metrics["loss"], rel=1e-5)
    assert in_chunks.metrics["accuracy"] == whole.metrics["accuracy"]
    assert in_chunks.predicted_labels.keys() == whole.predicted_labels.keys()
    for row, labels in whole.predicted_labels.items():
        assert in_chunks.predicted_labels[row].ids == labels.ids
        assert in_chunks.predicted_labels[row].probabilities == pytest.approx(labels.probabilities, rel=1e-4)
    assert in_chunks.terms.keys() == whole.terms.keys()
    for name, term in whole.terms.items():
        torch.testing.assert_close(in_chunks.terms[name].sum, term.sum)
        assert in_chunks.terms[name].weight == term.weight
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other)
