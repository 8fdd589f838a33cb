"""The models of a comparison in its folder: a TOML file each, with all settings of their trainings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from foveal.config import Config
from foveal.store.durable import atomic_folder, write_synced
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json, seal_json
from foveal.tasks.read_settings import config_to_toml

MODELS_FOLDER, MODELS_FILE = "models", "models.json"


@dataclass(frozen=True)
class PlannedModel:
    """A model of a comparison, as it is trained."""

    name: str
    preset: str
    """What its settings come from."""
    width: str
    """The setting of its width."""
    lr: float
    parameters: int
    flops: float
    """Floating-point operations of its training for a token, or another unit of speed."""
    memory: int
    """Bytes of the tensors of a training step."""


@dataclass(frozen=True)
class PlannedModels:
    """The models of a comparison."""

    models: tuple[PlannedModel, ...]
    origin: str
    """The name of the model whose settings of data and task all have."""


def write_models(folder: Path, planned: PlannedModels, configs: Mapping[str, Config]) -> None:
    """Write the models of a study into its folder, with their settings by name.

    Raises: RunFailed: the folder can't be written.
    """
    with atomic_folder(folder / MODELS_FOLDER) as new:
        for name, config in configs.items():
            write_synced(new / f"{name}.toml", config_to_toml(config).encode())
        write_synced(new / MODELS_FILE, seal_json(asdict(planned)))


def read_models(folder: Path) -> PlannedModels | None:
    """Return the models of a study; None if they were not written yet.

    Raises: UserError: the file is damaged.
    """
    file = folder / MODELS_FOLDER / MODELS_FILE
    if not file.exists():
        return None
    content = open_json(read_regular(file), str(file))
    return PlannedModels(tuple(PlannedModel(**each) for each in content["models"]), content["origin"])


def model_file(folder: Path, name: str) -> Path:
    """Return the TOML file of a model."""
    return folder / MODELS_FOLDER / f"{name}.toml"


def training_path(folder: Path, name: str, seed: int) -> Path:
    """Return the folder of a run of a study."""
    return folder / f"{name}-seed{seed}"
