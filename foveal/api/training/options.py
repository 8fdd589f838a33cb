"""What the user asks of a training, in Python and on the command line."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foveal.core.errors import UserError

OPTION_NAMES = {"start_from": "from"}
"""Options whose fields have another name: it is a keyword of Python."""


@Parameter(name="*")
@dataclass(frozen=True)
class TrainingOptions:
    """The options that every training has. All other settings are `key.sub=value`."""

    task: str | None = None
    """What to learn; if not given, the model's task, or the one that fits DATA and the named columns."""
    model: str | None = None
    """A preset or network from `foveal models`, or the path of a TOML file; if not given, the task's own, or
    the model of --from."""
    start_from: Annotated[Path | None, Parameter(name=f"--{OPTION_NAMES['start_from']}")] = None
    """A run whose weights and tokenizer to start from, or published weights: minilm or lite0; for another
    task or other labels only its encoder."""
    text: str | None = None
    """The column of texts, or of sources if --target is given."""
    label: str | None = None
    """The column of labels."""
    target: str | None = None
    """The column of target texts."""
    valid: str | None = None
    """Held-out data that selects the best weights; nothing is then split off from DATA."""
    test: str | None = None
    """Held-out data for the reported score; nothing is then split off from DATA."""
    run: Path | None = None
    """The folder to create; runs/DATA-MODEL-N if not given."""
    budget: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """How long to train: 90s, 3m, 2h, 2000steps, 5epochs, 10Mtokens."""
    epochs: int | None = None
    """How many times to train on all of DATA, in place of --budget."""
    lr: float | None = None
    """The highest learning rate."""
    batch: int | None = None
    """The images or series in a batch, or else the tokens, words or frames."""
    slots: int | None = None
    """Parts into which each batch is cut, so that several processes can share it; the weights depend on it,
    and not on the number of processes."""
    seed: int | None = None
    """The seed of the first weights, the batches and all that is drawn."""
    pretrained: Literal["auto", "no"] = "auto"
    """auto starts from published weights where DATA are few, and fetches them once; no never does."""
    device: str = "auto"
    """cpu, cuda, mps, or auto."""
    log: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """Where the metrics go beside the run: tensorboard, mlflow, trackio, wandb or csv; may be repeated."""

    def overrides(self) -> list[str]:
        """Return the options that are short names of settings, as `key.sub=value`.

        Raises: UserError: both a budget and epochs are given.
        """
        if self.epochs is not None and self.budget is not None:
            raise UserError(f"--epochs {self.epochs} and --budget {self.budget}: give one of them")
        values = {
            "data.source" if self.target is not None else "data.text": self.text,
            "data.label": self.label,
            "data.target": self.target,
            "optimizer.lr": self.lr,
            "training.seed": self.seed,
            "training.slots": self.slots,
            "training.budget": self.budget if self.epochs is None else f"{self.epochs}epochs",
        }
        return [setting(key, value) for key, value in values.items() if value is not None]

    def words(self) -> list[str]:
        """Return the options as `foveal train` takes them. Those with their defaults are left out."""
        words = list[str]()
        for option in fields(self):
            value = getattr(self, option.name)
            if value != option.default:
                name = f"--{OPTION_NAMES.get(option.name, option.name)}"
                given = value if isinstance(value, tuple) else (value,)
                words += [word for each in given for word in (name, str(each))]
        return words


def setting(key: str, value: object) -> str:
    """Return a setting as `key.sub=value`, with the value as TOML.

    Raises: UserError: the value is of a type that no setting has.
    """
    try:
        return f"{key}={json.dumps(value, ensure_ascii=False, default=_number)}"
    except (TypeError, ValueError):
        given = type(value).__name__
        raise UserError(f"{key}: {given}; give a text, a number, a truth value or a list of these") from None


def _number(value: Any) -> Any:
    """Return a number of NumPy as one of Python."""
    if not hasattr(value, "item"):
        raise TypeError
    return value.item()


NO_OPTIONS = TrainingOptions()
"""The options if none are given."""
