"""Typed configuration: preset < file < `key.sub=value` on the command line; unknown keys are errors.

Layers never see a config: they take plain numbers. Only models, data, tasks and the trainer read one.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

PRESETS = Path(__file__).parent / "presets"
LARGEST = 1 << 20
"""Of all sizes: what is larger is a slip."""

Positive = Annotated[int, Field(gt=0)]
Size = Annotated[int, Field(gt=0, le=LARGEST)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ConfigError(ValueError):
    """A configuration that the user can mend, said in one line."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, coerce_numbers_to_str=True)


class DataConfig(Strict):
    """How text becomes batches of tokens."""

    tokenizer: Literal["character", "byte", "bpe"] = "character"
    vocabulary: Annotated[int, Field(ge=257, le=65536)] = 4096
    """Size of a BPE vocabulary (the other tokenizers find their own)."""
    column: str = "text"
    """The column of a table that holds the text."""
    order: Literal["streams", "windows"] = "windows"
    """Contiguous streams with carried state, or random windows."""
    restart: Fraction = 0.0
    """Chance that a stream's state begins anew at a chunk, so that the model stays able to begin."""
    context: Size = 128
    """Tokens in a window, or in a chunk of truncated backpropagation."""
    batch_tokens: Positive = 4096
    """Tokens in a batch: batch_tokens // context rows."""
    valid: Fraction = 0.05
    """Share held out to choose the best weights, where no --valid is given."""
    test: Fraction = 0.05
    """Share held out for the reported figure, where neither --valid nor --test is given."""


class AttentionConfig(Strict):
    heads: Size = 4
    window: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    """Keys a query sees, itself included; 0 means all before it."""


class RecurrentConfig(Strict):
    nonlinearity: Literal["tanh", "relu"] = "tanh"
    """The Elman network's."""
    reset: Literal["before", "after"] = "after"
    """The GRU's reset gate multiplies before the recurrent product (Cho) or after it (cuDNN, torch)."""
    learned_start: bool = False


class ConvolutionConfig(Strict):
    kernel: Size = 3
    """Inputs that an output sees."""
    dilations: str = "1"
    """Steps from one of them to the next, a pattern repeated over the layers: `1,2,4,8`."""

    @field_validator("dilations")
    @classmethod
    def _numbers(cls, pattern: str) -> str:
        for step in pattern.split(","):
            if not (step.strip().isdecimal() and 1 <= int(step) <= LARGEST):
                raise ValueError(f"expected numbers from 1 to {LARGEST}, such as 1,2,4,8")
        return pattern


class S5Config(Strict):
    states: Size = 64
    """Complex states, half of as many conjugate pairs."""
    blocks: Size = 4
    """Blocks of the first state matrix, each a HiPPO matrix of its own."""


class MambaConfig(Strict):
    expansion: Size = 2
    """Inner width over the model's."""
    states: Size = 16
    """States of each inner channel."""
    kernel: Size = 4
    """Inputs that the short convolution sees."""


class ExpertsConfig(Strict):
    count: Size = 8
    active: Size = 2
    """Experts that each vector is sent to."""
    balance: NotNegative = 0.01
    """Coefficient of the load balance in the objective."""


class PositionConfig(Strict):
    kind: Literal["none", "rotary", "learned", "sinusoidal"] = "none"
    join: Literal["add", "concatenate"] = "add"


class ModelConfig(Strict):
    """A generator: embedding, a stack of blocks, a projection to the vocabulary."""

    mixers: str = "lstm"
    """Pattern of mixers, repeated over the layers: `lstm`, `lstm,attention` ..."""
    layers: Size = 2
    width: Size = 256
    embedding: Annotated[int, Field(ge=-1, le=LARGEST)] = 0
    """Width of the embedding: 0 is the model's width, -1 is one-hot."""
    embedding_norm: bool = False
    """A norm right behind the embedding (RWKV's)."""
    feedforward: Literal["none", "mlp", "swiglu", "highway", "experts", "channel-mixing"] = "none"
    expansion: Annotated[float, Field(gt=0, le=1024)] = 4.0
    """Width of the feed-forward layer over the model's (SwiGLU takes 2/3 of it: same parameters)."""
    activation: Literal["gelu", "gelu-tanh", "relu"] = "gelu"
    """Of the MLP and the experts; gelu-tanh is GPT-2's approximation."""
    norm: Literal["none", "layer", "rms"] = "none"
    norm_place: Literal["pre", "post"] = "pre"
    residual: bool = False
    dropout: Fraction = 0.0
    """Share of each mixer's and feed-forward layer's outputs that is dropped while training."""
    tied: bool = False
    """The projection to the vocabulary shares the embedding's table."""
    projection_bias: bool = True
    attention: AttentionConfig = AttentionConfig()
    recurrent: RecurrentConfig = RecurrentConfig()
    convolution: ConvolutionConfig = ConvolutionConfig()
    s5: S5Config = S5Config()
    mamba: MambaConfig = MambaConfig()
    experts: ExpertsConfig = ExpertsConfig()
    positions: PositionConfig = PositionConfig()


class TaskConfig(Strict):
    name: Literal["language"] = "language"
    loss: Literal["mean", "sum"] = "mean"
    """Loss per token, or summed over each row's chunk (as in min-char-rnn)."""
    positions: Literal["all", "last"] = "all"
    """Where the loss is taken: at every position or only at a window's last."""


class OptimizerConfig(Strict):
    name: Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"] = "adamw"
    rate: Rate = 2e-3
    weight_decay: NotNegative = 0.0
    momentum: Fraction = 0.9
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    epsilon: Rate = 1e-8
    clip_norm: NotNegative = 1.0
    """Largest global norm of the gradient; 0 leaves it."""
    clip_value: NotNegative = 0.0
    """Largest absolute value of each gradient element; 0 leaves it."""


class ScheduleConfig(Strict):
    name: Literal["constant", "linear", "cosine"] = "linear"
    """After the warm-up the rate is held, then falls as named from `decay_start` to the end."""
    warmup: Annotated[int, Field(ge=0)] = 50
    """Steps of linear warm-up."""
    decay_start: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Where the fall begins, as a share of all steps."""
    final: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The last rate as a share of the highest."""


class TrainingConfig(Strict):
    budget: str = "3m"
    """`90s`, `3m`, `2h`, `2000steps`, `5epochs`, `10Mtokens`."""
    seed: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Of the matrix products; auto is bfloat16 where the machine multiplies it in hardware, and a run keeps
    what it was begun with."""
    accumulate: Positive = 1
    """Micro-batches added up before each update."""
    evaluate_every: Annotated[int, Field(ge=0)] = 0
    """Steps between evaluations; 0 means about twelve in all."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Evaluations without progress before stopping early; 0 means never."""
    average: Fraction = 0.0
    """Decay of the exponential moving average of the weights that is evaluated and kept; 0 means none."""
    checkpoint_seconds: Rate = 30.0
    """Longest time between checkpoints."""
    bad_steps: Positive = 10
    """Refused steps in a row (NaN or infinite) before giving up."""


class Config(Strict):
    """Everything that makes a run, saved in full as `config.toml`."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    task: TaskConfig = TaskConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> "Config":
        model, attention = self.model, self.model.attention
        if self.data.batch_tokens < self.data.context:
            raise ValueError(
                f"data.batch_tokens={self.data.batch_tokens} is less than one row of "
                f"data.context={self.data.context} tokens"
            )
        if "attention" in model.mixers:
            if model.width % attention.heads:
                raise ValueError(
                    f"model.width={model.width} is not a multiple of model.attention.heads={attention.heads}"
                )
            if model.positions.kind == "rotary" and model.width // attention.heads % 2:
                raise ValueError(
                    f"rotary positions need an even head width, "
                    f"not {model.width}/{attention.heads} = {model.width // attention.heads}"
                )
            if self.data.order == "streams" and attention.window == 0:
                raise ValueError(
                    "attention without a window can't be carried from chunk to chunk: "
                    "set model.attention.window, or data.order=windows"
                )
        if model.feedforward not in ("none", "highway") and model.expansion * model.width < 1:
            raise ValueError(
                f"model.expansion={model.expansion:g} of model.width={model.width} leaves no hidden unit"
            )
        if model.feedforward == "experts" and model.experts.active > model.experts.count:
            raise ValueError(
                f"model.experts.active={model.experts.active} is more than "
                f"model.experts.count={model.experts.count}"
            )
        if "s5" in model.mixers and model.s5.states % model.s5.blocks:
            raise ValueError(
                f"model.s5.states={model.s5.states} is not a multiple of model.s5.blocks={model.s5.blocks}"
            )
        if model.tied and model.embedding not in (0, model.width):
            raise ValueError("model.tied needs an embedding as wide as the model: set model.embedding=0")
        if self.task.loss == "sum" and self.task.positions == "last":
            raise ValueError("task.loss=sum adds up a chunk's positions; with task.positions=last use mean")
        return self


def preset_names() -> list[str]:
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def load_config(preset: str, overrides: Iterable[str] = ()) -> Config:
    """The config of a preset (a name, or the path of a TOML file) with `key.sub=value` overrides."""
    return from_tables(read_preset(preset), parse_overrides(overrides))


def read_preset(preset: str) -> dict[str, Any]:
    path = Path(preset)
    if preset in preset_names():
        path = PRESETS / f"{preset}.toml"
    elif path.suffix != ".toml":
        raise ConfigError(f"unknown preset '{preset}'{nearest(preset, preset_names())}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None


def from_tables(*tables: Mapping[str, Any]) -> Config:
    """Merge nested tables, later ones win, and check the whole."""
    merged: dict[str, Any] = {}
    for table in tables:
        _merge(merged, table)
    try:
        return Config.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_plain(error, merged)) from None


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["model.width=64"]` as nested tables; values are TOML, or else plain strings."""
    tables: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key or not all(key.split(".")):
            raise ConfigError(f"'{override}': expected key.sub=value, such as model.width=256")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        for part in reversed(key.split(".")):
            value = {part: value}
        _merge(tables, value)
    return tables


def to_toml(config: BaseModel) -> str:
    """The config as TOML: one table a section, every value written out."""
    return "\n".join(_toml_lines(config.model_dump(), ())).strip() + "\n"


def nearest(word: str, known: Iterable[str]) -> str:
    """How to mend a misspelt word: the nearest known one, else all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(names)}"


def _merge(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _toml_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [""] + ([f"[{'.'.join(path)}]"] if path else [])
    lines += [f"{key} = {_toml_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _toml_lines(value, (*path, key))
    return lines


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def _plain(error: ValidationError, given: Mapping[str, Any]) -> str:
    """The first problem in one line, with the nearest known key or the allowed values."""
    problem = error.errors()[0]
    path = [str(part) for part in problem["loc"]]
    key = ".".join(path)
    if problem["type"] == "extra_forbidden":
        section: Any = Config
        for part in path[:-1]:
            section = section.model_fields[part].annotation
        return f"unknown key '{key}'{nearest(path[-1], section.model_fields)}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{key}={problem['input']}: {message[0].lower()}{message[1:]}" if path else message
