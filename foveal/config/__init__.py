"""Typed configuration: preset < file < `key.sub=value` on the command line; unknown keys are errors.

Layers never see a config: they take plain numbers. Only models, data, tasks and the trainer read one.
`tasks.config` loads a config whole, the section `task` with it.
"""

from foveal.config.data import AugmentConfig, DataConfig, ImageConfig, TokenizerName
from foveal.config.files import (
    ConfigError,
    merge_tables,
    parse_config,
    parse_overrides,
    preset_names,
    read_preset,
    suggest,
    to_toml,
)
from foveal.config.model import (
    AttentionConfig,
    AttentionRNNConfig,
    ConvolutionConfig,
    EncoderConfig,
    EncoderStackConfig,
    ExpertsConfig,
    MambaConfig,
    ModelConfig,
    PositionConfig,
    RecurrentConfig,
    S5Config,
    StackConfig,
)
from foveal.config.sections import (
    Config,
    OptimizerConfig,
    ScheduleConfig,
    TaskTable,
    TrainingConfig,
)

__all__ = [
    "AttentionConfig",
    "AttentionRNNConfig",
    "AugmentConfig",
    "Config",
    "ConfigError",
    "ConvolutionConfig",
    "DataConfig",
    "EncoderConfig",
    "EncoderStackConfig",
    "ExpertsConfig",
    "ImageConfig",
    "MambaConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PositionConfig",
    "RecurrentConfig",
    "S5Config",
    "ScheduleConfig",
    "StackConfig",
    "TaskTable",
    "TokenizerName",
    "TrainingConfig",
    "merge_tables",
    "parse_config",
    "parse_overrides",
    "preset_names",
    "read_preset",
    "suggest",
    "to_toml",
]
