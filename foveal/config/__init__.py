"""Typed configuration: preset < file < `key.sub=value` on the command line; unknown keys are errors.

Layers never see a config: they take plain numbers. Only models, data, tasks and the trainer read one.
"""

from foveal.config.data import AugmentConfig, DataConfig, ImageConfig, TokenizerName
from foveal.config.files import (
    ConfigError,
    from_tables,
    load_config,
    nearest,
    parse_overrides,
    preset_names,
    read_preset,
    to_toml,
)
from foveal.config.model import (
    AttentionConfig,
    AttentiveConfig,
    ConvolutionConfig,
    EncoderConfig,
    ExpertsConfig,
    MambaConfig,
    ModelConfig,
    PositionConfig,
    ReaderConfig,
    RecurrentConfig,
    S5Config,
    StackConfig,
)
from foveal.config.sections import (
    ASKING,
    ENCODERS,
    Config,
    OptimizerConfig,
    ScheduleConfig,
    TaskConfig,
    TaskName,
    TrainingConfig,
)

__all__ = [
    "ASKING",
    "ENCODERS",
    "AttentionConfig",
    "AttentiveConfig",
    "AugmentConfig",
    "Config",
    "ConfigError",
    "ConvolutionConfig",
    "DataConfig",
    "EncoderConfig",
    "ExpertsConfig",
    "ImageConfig",
    "MambaConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PositionConfig",
    "ReaderConfig",
    "RecurrentConfig",
    "S5Config",
    "ScheduleConfig",
    "StackConfig",
    "TaskConfig",
    "TaskName",
    "TokenizerName",
    "TrainingConfig",
    "from_tables",
    "load_config",
    "nearest",
    "parse_overrides",
    "preset_names",
    "read_preset",
    "to_toml",
]
