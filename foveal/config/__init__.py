"""Typed configuration: preset < file < `key.sub=value` on the command line; unknown keys are errors.

Layers never see a config: they take plain numbers. Only models, data, tasks and the trainer read one.
`tasks.config` loads a config whole, the section `task` with it.
"""

from foveal.config.data import AugmentConfig, DataConfig, ImageConfig, SeriesConfig, TokenizerName
from foveal.config.files import (
    MODELS_COMMAND,
    SETTINGS_COMMAND,
    ConfigError,
    merge_tables,
    other_word_advice,
    parse_config,
    parse_overrides,
    parse_toml,
    preset_description,
    preset_names,
    read_preset,
    suggest,
    validate_section,
)
from foveal.config.model import (
    EncoderConfig,
    EncoderStackConfig,
    ExpertsConfig,
    ModelConfig,
    PositionConfig,
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
    "MODELS_COMMAND",
    "SETTINGS_COMMAND",
    "AugmentConfig",
    "Config",
    "ConfigError",
    "DataConfig",
    "EncoderConfig",
    "EncoderStackConfig",
    "ExpertsConfig",
    "ImageConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PositionConfig",
    "ScheduleConfig",
    "SeriesConfig",
    "StackConfig",
    "TaskTable",
    "TokenizerName",
    "TrainingConfig",
    "merge_tables",
    "other_word_advice",
    "parse_config",
    "parse_overrides",
    "parse_toml",
    "preset_description",
    "preset_names",
    "read_preset",
    "suggest",
    "validate_section",
]
