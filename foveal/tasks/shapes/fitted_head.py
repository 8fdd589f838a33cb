"""A classifier's projection in closed form, from the encoder's features of all training rows."""

import torch

from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.models.encoder import EncoderWithHead
from foveal.ops.ridge import ridge_classifier
from foveal.training.protocols import Batches


def fit_ridge_head(model: EncoderWithHead, batches: Batches, progress: ProgressCallback) -> None:
    """Set the weights of the head's projection to the ridge classifier of the features of all batches.

    Raises: UserError: there are too few or too many rows for the closed form.
    """
    model.eval()
    device, features, labels = next(model.parameters()).device, list[torch.Tensor](), list[torch.Tensor]()
    with torch.no_grad():
        for batch in iterate_batches(batches, progress):
            batch = batch.to(device)
            memory, _ = model.encode(batch.columns, batch.lengths)
            features.append(model.head(memory)[0].float())
            labels.append(batch.columns["label"])
    try:
        fit = ridge_classifier(torch.cat(features), torch.cat(labels), model.head.classes)
    except ValueError as error:
        raise UserError(
            f"model.head_fit=ridge: {error}: set model.head_fit=none, and a training.budget to train for"
        ) from None
    with torch.no_grad():
        model.head.projection.weight.copy_(fit.weight)
        model.head.projection.bias.copy_(fit.bias)
