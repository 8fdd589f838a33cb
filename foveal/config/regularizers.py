"""The settings that regularize a training, by the ends of their names."""

RAISE_TRAINING_LOSS = (
    "dropout",
    "word_dropout",
    "data.augment.crop",
    "flip",
    "color_jitter",
    "cutout",
    "mixup",
    "data.series.jitter",
    "data.series.scaling",
    "ema_decay",
    "average_checkpoints",
)
"""Settings that make the training loss higher than that of the same rows without them."""
REGULARIZERS = (*RAISE_TRAINING_LOSS[:-2], "weight_decay", "label_smoothing")
"""Settings that keep a model from overfitting its training rows."""
OFF = (0, False, "none")
"""The values at which such a setting does nothing."""
