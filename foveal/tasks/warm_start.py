"""What a run gives another that begins from it, and a run its own beginning."""

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.images.image_examples import ImageInput
from foveal.data.pairs.labels import ClassLabels
from foveal.data.pairs.pair import PairProcessor
from foveal.encoders.joint import JointEncoder
from foveal.encoders.patches import PatchEncoder, interpolate_positions
from foveal.store.run import Run
from foveal.store.sealed import load_weights, open_tensors
from foveal.tasks.base import Task
from foveal.tasks.registry import open_task, task_of

ENCODER_PREFIX, PARTS_PREFIX, IMAGE_ENCODER_PREFIX = "encoder.", "encoder.parts.", "encoder.parts.source."
POSITION_TABLE = "stack.positioned.position.table"
"""Names of weights."""
INITIAL_WEIGHTS_FILE = "start.safetensors"


def processors_to_reuse(run: Run, task: Task) -> tuple[Any, ReusedProcessors]:
    """Return of a run's processors those to train on with: all of them for its own task, else the encoder's.

    Labels to choose among are made from the new data in any case.
    Raises: UserError: the run has no encoder that another task could take.
    """
    lender, config = open_task(run), task.config
    processor, same_task = _at_image_size(lender.processor, config), lender.name == task.name
    if same_task and not task.fits_labels:
        return processor, NO_REUSE
    if not same_task and run.config.model.encoder.kind == "none" and not lends_model(lender, config):
        raise UserError(f"{run.path}: {lender.name} has no encoder that another task could take")
    lender = lender.bound(processor)
    return None, ReusedProcessors(lender.lend_processor(task), _labels(processor))


def lends_model(lender: Task, config: Config) -> bool:
    """Return whether the whole model of a run can be the encoder that the config asks for."""
    return bool(lender.lends_model_as) and config.model.encoder.kind == lender.lends_model_as


def _labels(processor: Any) -> tuple[str, ...]:
    """Return the classes of a run; none where it chooses among none."""
    has_classes = isinstance(processor, PairProcessor) and isinstance(processor.target, ClassLabels)
    return processor.target.labels if has_classes else ()


def _at_image_size(processor: Any, config: Config) -> Any:
    """A run's inputs; of images at the size that they are to have now."""
    if not isinstance(processor, PairProcessor) or not isinstance(processor.source, ImageInput):
        return processor
    return replace(processor, source=replace(processor.source, size=config.data.image.size))


def load_run_weights(run: Run, task: Task) -> None:
    """Fill the model of `task` with the run's best weights.

    Raises: UserError: the run has no weights yet, or no head.
    """
    tensors = _weights(run)
    if _has_no_head(tensors):
        raise UserError(
            f"{run.path}: an encoder without a head, so it can only be trained on: "
            f"foveal train DATA --from {run.path} --task TASK"
        )
    load_weights(task.model, task.adapt_weights(tensors), str(run.weights))


def load_encoder(run: Run, model: nn.Module) -> None:
    """Fill the encoder of `model` with that of the run's best weights; of several sources that of the image,
    if the other reads images alone. Learned positions may be fewer, and those of patches of another grid.
    """
    encoder, prefix = model.get_submodule("encoder"), ENCODER_PREFIX
    tensors = task_of(run.config).encoder_weights(_weights(run), encoder)
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


def warm_start(run: Run, task: Task) -> bool:
    """Fill the new model of `task` from a run of the same task and processor, else its encoder.

    Return whether all weights are filled.
    Raises: UserError: neither can be filled.
    """
    alike = task.name == run.config.task.name and task.processor_files() == open_task(run).processor_files()
    whole = alike and not _has_no_head(_weights(run))
    if not whole and task.config.model.encoder.kind == "none":
        raise UserError(
            f"{run.path}: its labels are not those of the data, and it has no encoder that could do without "
            "them: leave out --from"
        )
    if whole:
        load_run_weights(run, task)
    else:
        load_encoder(run, task.model)
        task.reset_head()
    return whole


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
