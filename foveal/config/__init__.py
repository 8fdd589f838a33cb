"""Typed configuration: preset < file < `key.sub=value` on the command line; unknown keys are errors.

Layers never see a config: they take plain numbers. Only models, data, tasks and the trainer read one.
"""

from foveal.config.data import AugmentConfig, DataConfig, ImageConfig, TokenizerName
from foveal.config.files import (
    ConfigError,
    from_tables,
    load_config,
    parse_overrides,
    preset_names,
    read_preset,
    suggest,
    to_toml,
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
    TASK_ENCODERS,
    VQA_TASKS,
    Config,
    OptimizerConfig,
    ScheduleConfig,
    TaskConfig,
    TaskName,
    TrainingConfig,
)

__all__ = [
    "TASK_ENCODERS",
    "VQA_TASKS",
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
    "StackConfig",
    "TaskConfig",
    "TaskName",
    "TokenizerName",
    "TrainingConfig",
    "from_tables",
    "load_config",
    "parse_overrides",
    "preset_names",
    "read_preset",
    "suggest",
    "to_toml",
    "validate_section",
]
