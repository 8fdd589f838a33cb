"""From a config or a run folder to processors, model, data orders and task: explicit, in one place."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveal.build import language, masked
from foveal.build.ask import AnswerKind, ChooseKind, ReplyKind
from foveal.build.captions import CaptionKind
from foveal.build.choices import ChoosingKind
from foveal.build.draw import DrawKind
from foveal.build.fitting import fit_first
from foveal.build.frames import ClipsKind, FramesKind, NarrateKind
from foveal.build.glimpse import GlimpseKind
from foveal.build.images import ImageKind
from foveal.build.kind import Given, Kind, Say
from foveal.build.labels import LabelKind
from foveal.build.navigate import NavigateKind
from foveal.build.pairs import PairKind
from foveal.build.series import SeriesKind, StepsKind
from foveal.build.speech import SpeechKind
from foveal.build.tags import TagKind
from foveal.config import Config, TaskName
from foveal.core.errors import UserError
from foveal.core.runtime import seed_everything, settled
from foveal.data.prepared import NOTHING, Prepared, Taken
from foveal.data.tokenizers import Tokenizer
from foveal.encoders.joint import JointEncoder
from foveal.encoders.patches import PatchEncoder, regrid
from foveal.layers.initialization import initialize
from foveal.training.freezing import freeze
from foveal.training.protocols import Batches, Task
from foveal.training.run import Run, create_run, open_run
from foveal.training.sealed import load_weights, open_tensors, seal_tensors, weights_of

KINDS: dict[TaskName, Kind] = {
    "language": language,
    "translate": PairKind(),
    "transduce": PairKind(),
    "transcribe": SpeechKind(),
    "classify": LabelKind(),
    "tag": TagKind(),
    "mask": masked,
    "series": SeriesKind(),
    "steps": StepsKind(),
    "images": ImageKind(),
    "glimpse": GlimpseKind(),
    "draw": DrawKind(),
    "caption": CaptionKind(),
    "clips": ClipsKind(),
    "frames": FramesKind(),
    "narrate": NarrateKind(),
    "answer": AnswerKind(),
    "reply": ReplyKind(),
    "choose": ChooseKind(),
    "navigate": NavigateKind(),
}


ENCODER, PARTS, POSITIONS = "encoder.", "encoder.parts.", "stack.positioned.position.table"
"""Names of weights."""
START = "start.safetensors"


def kind_of(config: Config) -> Kind:
    return KINDS[config.task.name]


def settle(config: Config, device: torch.device) -> Config:
    """The config with what depends on the machine decided, so that a run goes on alike on another one."""
    training = config.training
    precision = settled(training.precision, device)
    return config.model_copy(update={"training": training.model_copy(update={"precision": precision})})


def build_model(config: Config, inputs: Any, device: torch.device) -> nn.Module:
    """The model with its first weights, a function of the config and its seed; some frozen, if it says so."""
    seed_everything(config.training.seed, "weights")
    model = kind_of(config).model(config, inputs).to(device)
    head = model.get_submodule("head") if hasattr(model, "head") else model
    initialize(model, config.model.initialization, head.get_submodule("projection"))
    freeze(model, config.training.freeze)
    return model


def build_task(config: Config, model: nn.Module, inputs: Any, shown: Any = None) -> Task:
    """The task; previews are taken from `shown`, held-out data."""
    return kind_of(config).task(config, model, inputs, shown)


def training_order(config: Config, data: Any) -> Batches:
    """The batches of training, micro-batches of the configured number of tokens."""
    return kind_of(config).training_order(config, data)


def held_out_order(config: Config, data: Any) -> Batches:
    """The whole of a held-out part, once."""
    return kind_of(config).held_out_order(config, data)


@dataclass(frozen=True)
class Loaded:
    """A run, ready to use: `model` is in evaluation mode with the run's best weights.

    `inputs` are its processors: the tokenizer of a language model, `PairInputs` of a translator ...
    """

    run: Run
    config: Config
    model: Any
    inputs: Any
    task: Any


def load(path: str | Path, device: str | torch.device = "cpu") -> Loaded:
    """Open a run folder: its model, its inputs' processors and its task.

    Raises UserError for what is no run, is damaged, or has no weights yet.
    """
    run = open_run(Path(path))
    inputs = open_inputs(run)
    model = build_model(run.config, inputs, torch.device(device))
    load_run_weights(run, model)
    return Loaded(run, run.config, model.eval(), inputs, build_task(run.config, model, inputs))


def open_inputs(run: Run) -> Any:
    """The processors of a run's inputs."""
    return kind_of(run.config).open_inputs(run.inputs)


def inputs_for(run: Run, config: Config) -> tuple[Any, Taken]:
    """Of a run's inputs those to train on with: all of them for its own task, else what its encoder needs.

    Labels to choose among are made from the new data in any case.
    """
    inputs = open_inputs(run)
    if config.task.name == run.config.task.name and not isinstance(kind_of(config), ChoosingKind):
        return inputs, NOTHING
    if run.config.model.encoder.kind == "none":
        raise UserError(f"{run.path}: {run.config.task.name} has no encoder that another task could take")
    source = inputs if isinstance(inputs, Tokenizer) else inputs.source
    return None, Taken(source, getattr(inputs, "labels", ()))


def load_run_weights(run: Run, model: nn.Module) -> None:
    """Fill `model` with the run's best weights."""
    tensors = _weights(run)
    if _headless(tensors):
        raise UserError(
            f"{run.path}: an encoder without a head, so it can only be trained on: "
            f"foveal train DATA --from {run.path} --task classify (or tag, mask)"
        )
    load_weights(model, tensors, str(run.weights))


def load_encoder(run: Run, model: nn.Module) -> None:
    """Fill the encoder of `model` with that of the run's best weights, of several sources that of the image;
    learned positions may be fewer, and those of patches of another grid."""
    encoder, tensors = model.get_submodule("encoder"), _weights(run)
    if isinstance(encoder, JointEncoder) and not any(name.startswith(PARTS) for name in tensors):
        encoder = encoder.get_submodule("parts.source")
    own = {name.removeprefix(ENCODER): tensor for name, tensor in tensors.items() if name.startswith(ENCODER)}
    if POSITIONS in own:
        wanted = len(encoder.get_parameter(POSITIONS))
        if isinstance(encoder, PatchEncoder):
            own[POSITIONS] = regrid(own[POSITIONS], wanted, encoder.token is not None)
        if wanted > len(own[POSITIONS]):
            raise UserError(
                f"data.longest={wanted}, but {run.path} knows {len(own[POSITIONS])} positions: lower it"
            )
        own[POSITIONS] = own[POSITIONS][:wanted]
    load_weights(encoder, own, str(run.weights))


def begin_from(run: Run, config: Config, inputs: Any, model: nn.Module) -> bool:
    """Fill a new `model` from a run of the same task and inputs, else its encoder; True if all is filled.

    A new head behind images starts at zero, with a loss of `ln C` whatever the size of the network's
    features (Dosovitskiy et al. 2021, 3.1).
    """
    same_task, files = config.task.name == run.config.task.name, kind_of(config).input_files
    whole = same_task and files(inputs) == files(open_inputs(run)) and not _headless(_weights(run))
    (load_run_weights if whole else load_encoder)(run, model)
    if not whole and isinstance(kind_of(config), ImageKind):
        nn.init.zeros_(model.get_parameter("head.projection.weight"))
    return whole


def _weights(run: Run) -> dict[str, Tensor]:
    if not run.weights.is_file():
        raise UserError(f"{run.path}: no weights yet: train on with foveal resume {run.path}")
    return open_tensors(run.weights.read_bytes(), str(run.weights))[0]


def _headless(tensors: dict[str, Tensor]) -> bool:
    return all(name.startswith(ENCODER) for name in tensors)


def new_run(
    path: Path,
    config: Config,
    prepared: Prepared[Any, Any],
    given: Given,
    preset: str = "",
    device: str = "cpu",
    start: nn.Module | None = None,
) -> Run:
    """Make the folder of a run on `prepared`, the data that was `given`.

    `start` has the first weights where they are not those of the seed: they are kept, for a run that is
    stopped before its first checkpoint.
    """
    lasting = {part: _lasting(name) for part, name in given._asdict().items()}
    about = {**lasting, "preset": preset, "device": device, "facts": prepared.facts}
    lines = (json.dumps({"place": row.place, "why": row.why}) for row in prepared.aside)
    beside = {"set_aside.jsonl": "".join(f"{line}\n" for line in lines).encode()} if prepared.aside else {}
    inputs = kind_of(config).input_files(prepared.inputs)
    if start is not None:
        inputs = inputs | {START: seal_tensors(weights_of(start), {"which": "start"})}
    return create_run(path, config, inputs, about, beside=beside)


def load_start(run: Run, model: nn.Module) -> None:
    """Fill a new `model` with the run's first weights, where they are not those of the seed."""
    kept = run.inputs / START
    if kept.is_file():
        load_weights(model, open_tensors(kept.read_bytes(), str(kept))[0], str(kept))


def _lasting(name: str | None) -> str | None:
    """Paths that mean the same from every folder; a name of the catalogue as it is."""
    if name is None:
        return None
    return ",".join(str(Path(part).absolute()) if Path(part).exists() else part for part in name.split(","))


def prepare_again(run: Run, say: Callable[[str], None]) -> Prepared[Any, Any]:
    """The data of a run as it was; UserError if it has changed since, or the run was imported."""
    facts = run.facts["data"]
    if facts["data"] is None:
        raise UserError(
            f"{run.path}: imported, so it has no data of its own: name some, or train a new run with "
            f"foveal train DATA --from {run.path}"
        )
    given, before = Given(facts["data"], facts["valid"], facts["test"]), facts["facts"]["parts"]
    prepared = kind_of(run.config).prepare(run.config, given, say, open_inputs(run))
    for part, found in prepared.facts["parts"].items():
        if part not in before or found["sha256"] != before[part]["sha256"]:
            raise UserError(
                f"{given.data}: the {part} text has changed since {run.path} was made; restore it, "
                "or train a new run"
            )
    return prepared


__all__ = [
    "KINDS",
    "Given",
    "Loaded",
    "Say",
    "begin_from",
    "build_model",
    "build_task",
    "fit_first",
    "held_out_order",
    "inputs_for",
    "kind_of",
    "load",
    "load_encoder",
    "load_run_weights",
    "load_start",
    "new_run",
    "open_inputs",
    "prepare_again",
    "settle",
    "training_order",
]
