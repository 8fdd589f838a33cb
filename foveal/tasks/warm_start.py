"""What a run gives another that begins from it, and a run its own beginning."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.text.tokenizers import Tokenizer
from foveal.encoders.joint import JointEncoder
from foveal.encoders.patches import PatchEncoder, interpolate_positions
from foveal.objectives.selective import match_proxy
from foveal.store.run import Run
from foveal.store.sealed import load_weights, open_tensors
from foveal.tasks.image_classification import ImageClassificationTask
from foveal.tasks.labeling import LabelingTask
from foveal.tasks.registry import load_processor, task_of
from foveal.tasks.vqa.task import BaseVQATask
from foveal.tasks.vqa.vqa_examples import VQAProcessor

ENCODER_PREFIX, PARTS_PREFIX, IMAGE_ENCODER_PREFIX = "encoder.", "encoder.parts.", "encoder.parts.source."
EMBEDDING_TABLE, PROJECTION_PREFIX = "embedding.table", "projection."
POSITION_TABLE = "stack.positioned.position.table"
"""Names of weights."""
INITIAL_WEIGHTS_FILE = "start.safetensors"


def processors_to_reuse(run: Run, config: Config) -> tuple[Any, ReusedProcessors]:
    """Of a run's inputs those to train on with: all of them for its own task, else what its encoder needs.

    Labels to choose among are made from the new data in any case.
    """
    inputs, same_task = _at_image_size(load_processor(run), config), config.task.name == run.config.task.name
    if same_task and not isinstance(task_of(config), LabelingTask):
        return inputs, NO_REUSE
    if (
        not same_task
        and run.config.model.encoder.kind == "none"
        and not _language_model_as_encoder(run, config)
    ):
        raise UserError(f"{run.path}: {run.config.task.name} has no encoder that another task could take")
    source = inputs if isinstance(inputs, Tokenizer) else inputs.source
    if isinstance(source, VQAProcessor) and not isinstance(task_of(config), BaseVQATask):
        source = source.statistics
    return None, ReusedProcessors(source, getattr(inputs, "labels", ()))


def _at_image_size(processor: Any, config: Config) -> Any:
    """A run's inputs; of images at the size that they are to have now."""
    pictured = is_dataclass(processor) and "size" in {field.name for field in fields(processor)}
    return replace(processor, size=config.data.image.size) if pictured else processor


def load_run_weights(run: Run, model: nn.Module) -> None:
    """Fill `model` with the run's best weights."""
    tensors = _weights(run)
    if _has_no_head(tensors):
        raise UserError(
            f"{run.path}: an encoder without a head, so it can only be trained on: "
            f"foveal train DATA --from {run.path} --task text-classification (or tag, mask)"
        )
    load_weights(model, match_proxy(model, tensors), str(run.weights))


def load_encoder(run: Run, model: nn.Module) -> None:
    """Fill the encoder of `model` with that of the run's best weights; of several sources that of the image,
    if the other reads images alone. Learned positions may be fewer, and those of patches of another grid.

    A language model is an encoder but for its projection; it knows no marks, which stay as they are.
    """
    encoder, tensors, prefix = model.get_submodule("encoder"), _weights(run), ENCODER_PREFIX
    if run.config.task.name == "language-model":
        tensors = {
            ENCODER_PREFIX + name: x for name, x in tensors.items() if not name.startswith(PROJECTION_PREFIX)
        }
        known = tensors[ENCODER_PREFIX + EMBEDDING_TABLE]
        marks = encoder.get_parameter(EMBEDDING_TABLE).detach()[len(known) :]
        tensors[ENCODER_PREFIX + EMBEDDING_TABLE] = torch.cat([known, marks.to(known)])
    joined = any(name.startswith(PARTS_PREFIX) for name in tensors)
    if isinstance(encoder, JointEncoder) and not joined:
        encoder = encoder.get_submodule("parts.source")
    elif joined and not isinstance(encoder, JointEncoder):
        prefix = IMAGE_ENCODER_PREFIX
    own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    if POSITION_TABLE in own:
        wanted = len(encoder.get_parameter(POSITION_TABLE))
        if isinstance(encoder, PatchEncoder):
            own[POSITION_TABLE] = interpolate_positions(
                own[POSITION_TABLE], wanted, encoder.token is not None
            )
        if wanted > len(own[POSITION_TABLE]):
            raise UserError(
                f"data.max_length={wanted}, but {run.path} knows {len(own[POSITION_TABLE])} positions: "
                "lower it"
            )
        own[POSITION_TABLE] = own[POSITION_TABLE][:wanted]
    load_weights(encoder, own, str(run.weights))


def warm_start(run: Run, config: Config, processor: Any, model: nn.Module) -> bool:
    """Fill a new `model` from a run of the same task and inputs, else its encoder; True if all is filled.

    A new head behind images starts at zero, with a loss of `ln C` whatever the size of the network's
    features (Dosovitskiy et al. 2021, 3.1).
    """
    same_task, files = config.task.name == run.config.task.name, task_of(config).processor_files
    alike = same_task and files(processor) == files(load_processor(run))
    whole = alike and not _has_no_head(_weights(run))
    if not whole and config.model.encoder.kind == "none":
        raise UserError(
            f"{run.path}: its labels are not those of the data, and it has no encoder that could do without "
            "them: leave out --from"
        )
    (load_run_weights if whole else load_encoder)(run, model)
    if not whole and isinstance(task_of(config), ImageClassificationTask):
        nn.init.zeros_(model.get_parameter("head.projection.weight"))
    return whole


def _language_model_as_encoder(run: Run, config: Config) -> bool:
    """Whether the run is a language model that is to read texts for another task."""
    return run.config.task.name == "language-model" and config.model.encoder.kind == "text"


def load_initial_weights(run: Run, model: nn.Module) -> None:
    """Fill a new `model` with the run's first weights, where they are not those of the seed."""
    kept = run.processor_folder / INITIAL_WEIGHTS_FILE
    if kept.is_file():
        load_weights(model, open_tensors(kept.read_bytes(), str(kept))[0], str(kept))


def _weights(run: Run) -> dict[str, Tensor]:
    if not run.weights.is_file():
        raise UserError(f"{run.path}: no weights yet: train on with foveal resume {run.path}")
    return open_tensors(run.weights.read_bytes(), str(run.weights))[0]


def _has_no_head(tensors: dict[str, Tensor]) -> bool:
    return all(name.startswith(ENCODER_PREFIX) for name in tensors)
