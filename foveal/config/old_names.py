"""The only table of the names that tasks, presets, settings, options, views and files had in run format 1."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

LAST_OLD_FORMAT = 1
"""Runs up to this `format` of `run.json` were written with the old names."""
UPGRADE_NOTE = "made with an older version: settings are read under their new names"

TASKS = {
    "language": "language-model",
    "translate": "translation",
    "transduce": "transduction",
    "transcribe": "speech-recognition",
    "sounds": "audio-classification",
    "classify": "text-classification",
    "tag": "tagging",
    "mask": "masked-lm",
    "series": "series-classification",
    "steps": "series-tagging",
    "images": "image-classification",
    "glimpse": "glimpses",
    "draw": "image-generation",
    "caption": "captioning",
    "clips": "video-classification",
    "frames": "frame-tagging",
    "narrate": "video-captioning",
    "answer": "vqa",
    "reply": "vqa-generate",
    "choose": "vqa-multiple-choice",
    "navigate": "navigation",
}
PRESETS = {
    **{old: new for old, new in TASKS.items() if old not in ("language", "transcribe", "draw")},
    "listen": "speech-recognition",
    "translate-gru": "translation-gru",
    "caption-bottleneck": "captioning-bottleneck",
    "caption-hard": "captioning-hard-attention",
    "caption-patches": "captioning-patches",
    "caption-transformer": "captioning-transformer",
    "read": "word-recognition",
    "features": "hog",
    "dialog": "visual-dialog",
}
COMMANDS = {"transfer": "compare-finetuning", "check-plugin": "check"}
OPTIONS = {"--views": "--tta", "--scales": "--tta-scales"}
VIEWS = {"neighbours": "neighbors", "walks": "navigation"}

STACK_SETTINGS = {
    "embedding": "embedding_width",
    "norm_place": "norm_placement",
    "experts.active": "experts.top_k",
    "experts.balance": "experts.balance_coefficient",
    "summary": "pooling",
}
"""The settings of every stack of a model."""
MIXER_SETTINGS: dict[str, dict[str, str]] = {
    "attention.heads": {"attention": "attention.heads", "cross": "cross.heads"},
    "attention.window": {"attention": "attention.window"},
    "recurrent.nonlinearity": {"rnn": "rnn.nonlinearity"},
    "recurrent.learned_start": {
        "rnn": "rnn.learned_initial_state",
        "lstm": "lstm.learned_initial_state",
        "gru": "gru.learned_initial_state",
    },
    "recurrent.reset": {"gru": "gru.reset_after"},
    "convolution.kernel": {"conv": "conv.kernel_size"},
    "convolution.dilations": {"conv": "conv.dilations"},
    "s5.states": {"s5": "s5.state_size"},
    "s5.blocks": {"s5": "s5.blocks"},
    "mamba.expansion": {"mamba": "mamba.expand"},
    "mamba.states": {"mamba": "mamba.state_size"},
    "mamba.kernel": {"mamba": "mamba.conv_kernel"},
    "attentive.cell": {"attention-rnn": "attention_rnn.cell"},
    "attentive.score": {"attention-rnn": "attention_rnn.score"},
    "attentive.look": {"attention-rnn": "attention_rnn.hard"},
}
"""The settings of mixers: below any stack, and for each mixer that read one, in the mixer's own section."""
MIXER_VALUES: dict[str, dict[Any, Any]] = {
    "recurrent.reset": {"before": False, "after": True},
    "attentive.score": {"first": "initial-state", "summary": "every-step", "scaled": "scaled-dot"},
    "attentive.look": {"soft": False, "hard": True},
}
STACK_VALUES: dict[str, dict[Any, Any]] = {
    "mixers": {"attentive": "attention-rnn"},
    "feedforward": {"experts": "moe"},
    "summary": {"ends": "final-states", "class": "cls"},
}
STACKS = {
    "model": "model",
    "model.encoder": "model.encoder",
    "model.question": "task.question",
    "model.joint": "task.fusion",
    "model.fusion": "task.fusion",
}
"""The stacks, by their old names."""

SETTINGS = {
    "data.augment.jitter": "data.augment.color_jitter",
    "data.augment.shift": "data.augment.padding",
    "data.bins": "data.mel_bins",
    "data.column": "data.text",
    "data.context": "data.context_length",
    "data.group": "data.group_pattern",
    "data.group_of": "data.group_by",
    "data.hold": "data.hold_out",
    "data.image.batch": "data.image.batch_size",
    "data.image.scales": "data.image.tta_scales",
    "data.image.views": "data.image.tta",
    "data.joint": "data.shared_vocabulary",
    "data.longest": "data.max_length",
    "data.order": "task.batching",
    "data.rate": "data.sample_rate",
    "data.restart": "task.reset_probability",
    "data.seconds": "data.max_seconds",
    "data.test": "data.test_fraction",
    "data.valid": "data.valid_fraction",
    "data.vocabulary": "data.vocab_size",
    "model.draw.latent": "task.latent_size",
    "model.draw.read": "task.read_size",
    "model.draw.steps": "task.steps",
    "model.draw.write": "task.write_size",
    "model.encoder.nonlinearity": "model.encoder.network_activation",
    "model.encoder.normalization": "model.encoder.network_norm",
    "model.encoder.patch": "model.encoder.patch_size",
    "model.glimpse.count": "task.glimpses",
    "model.glimpse.deviation": "task.std",
    "model.glimpse.reinforce": "task.reinforce_coefficient",
    "model.glimpse.scales": "task.glimpse_scales",
    "model.glimpse.side": "task.glimpse_size",
    "model.pooling": "model.head_pooling",
    "model.tied": "model.tie_embeddings",
    "optimizer.rate": "optimizer.lr",
    "schedule.final": "schedule.final_lr_fraction",
    "schedule.warmup": "schedule.warmup_steps",
    "task.hardest": "task.select_fraction",
    "task.loss": "task.reduction",
    "task.positions": "task.loss_positions",
    "task.signal": "task.supervision",
    "task.smoothing": "task.label_smoothing",
    "training.accumulate": "training.grad_accumulation",
    "training.average": "training.ema_decay",
    "training.average_last": "training.average_checkpoints",
    "training.bad_steps": "training.max_nonfinite_steps",
    **{
        f"{old}.{name}": f"{new}.{renamed}"
        for old, new in STACKS.items()
        for name, renamed in STACK_SETTINGS.items()
    },
}
VALUES: dict[str, dict[Any, Any]] = {
    "task.name": TASKS,
    "data.hold": {"members": "variants"},
    "data.group_of": {"name": "file-name"},
    "data.image.views": {"centre": "none", "mirrored": "flip", "moved": "flip-shift", "ten": "ten-crop"},
    "data.augment.crop": {"shift": "pad", "reflect": "reflect-pad", "resized": "random-resized"},
    "model.initialization": {"own": "default"},
    "model.pooling": {"summary": "encoder"},
    "model.encoder.kind": {"vectors": "series", "volume": "conv3d"},
    "model.encoder.network": {"colour-histogram": "color-histogram"},
    **{f"{old}.{name}": values for old in STACKS for name, values in (STACK_VALUES | MIXER_VALUES).items()},
}
"""Values that have changed, by the old names of their settings."""

SMOOTHED_TASKS = (
    *("translation", "transduction", "speech-recognition", "captioning", "video-captioning", "vqa-generate"),
    *("text-classification", "audio-classification", "series-classification", "image-classification"),
    *("video-classification", "tagging", "series-tagging", "frame-tagging", "vqa"),
)
OWNERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("reduction", "loss_positions", "batching", "reset_probability"), ("language-model",)),
    "label_smoothing": SMOOTHED_TASKS,
    "select_fraction": ("image-classification",),
    "supervision": ("navigation",),
    **dict.fromkeys(
        ("glimpses", "std", "reinforce_coefficient", "glimpse_scales", "glimpse_size"), ("glimpses",)
    ),
    **dict.fromkeys(("question", "fusion"), ("vqa", "vqa-generate", "vqa-multiple-choice")),
    **dict.fromkeys(("latent_size", "read_size", "steps", "write_size"), ("image-generation",)),
}
"""The tasks that read a setting of the section `task`: an old config had those of every task."""
DATA_OWNERS: dict[str, tuple[str, ...]] = {
    "tags": ("tagging",),
    **dict.fromkeys(("question", "answer", "choices", "history"), OWNERS["question"]),
}
"""The tasks that have a setting of the section `data` of their own: likewise."""

FIELDS = {
    "Statistics": {"deviation": "std"},
    "LengthLimit": {"most": "maximum"},
    "LogMelSettings": {"rate": "sample_rate", "bins": "mel_bins", "longest": "max_seconds"},
}
"""Fields that the files of a run folder have, by the class that reads them."""


def upgrade(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a config of an old run under the new names."""
    upgraded: dict[str, Any] = {}
    settings = dict(flatten(tables))
    for key, value in settings.items():
        stack, names = _mixer_setting(key)
        mixers = re.split(r"[+,\s]+", str(_new_value(f"{stack}.mixers", settings.get(f"{stack}.mixers", ""))))
        new_keys = [f"{STACKS[stack]}.{new}" for mixer, new in names.items() if mixer in mixers]
        for new in new_keys if names else [_new_key(key) or key]:
            _put(upgraded, new, _new_value(key, value))
    task = upgraded.get("task", {})
    name = task.get("name", TASKS["language"])
    for section, owners in (("task", OWNERS), ("data", DATA_OWNERS)):
        if table := upgraded.get(section):
            upgraded[section] = {
                key: value for key, value in table.items() if name in owners.get(key, (name,))
            }
    return upgraded


def upgrade_fields(reader: type, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a run's file for the class that reads them, under their new names."""
    names = FIELDS.get(reader.__name__, {})
    return {names.get(name, name): value for name, value in fields.items()}


def explain_old_setting(key: str, value: object) -> str:
    """Return the current name of the setting `key`, or of its `value`. Empty if neither is an old name."""
    if new := _new_key(key):
        return f"{key} is now {new}"
    changed = _new_value(key, value)
    return "" if changed is value or changed == value else f"{key}={value} is now {key}={changed}"


def flatten(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting of nested tables with its dotted key."""
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _new_key(key: str) -> str | None:
    if key in SETTINGS:
        return SETTINGS[key]
    stack, names = _mixer_setting(key)
    if names:
        new = [f"{STACKS[stack]}.{name}" for name in names.values()]
        return None if key in new else " or ".join(new)
    moved = (old for old, new in STACKS.items() if old != new and key.startswith(f"{old}."))
    return next((f"{STACKS[old]}{key.removeprefix(old)}" for old in moved), None)


def _mixer_setting(key: str) -> tuple[str, dict[str, str]]:
    """Return the stack of a mixer's old setting, and its new names by mixer; no names for other settings."""
    stack, *rest = key.rsplit(".", 2)
    return stack, MIXER_SETTINGS.get(".".join(rest), {}) if stack in STACKS else {}


def _new_value(key: str, value: Any) -> Any:
    names = VALUES.get(key, {})
    if key.endswith(".mixers") and isinstance(value, str):  # a pattern of several names
        return re.sub(r"[\w-]+", lambda name: names.get(name[0], name[0]), value)
    return names.get(value, value) if isinstance(value, str) else value


def _put(tables: dict[str, Any], key: str, value: Any) -> None:
    *sections, name = key.split(".")
    for section in sections:
        tables = tables.setdefault(section, {})
    tables[name] = value
