"""Defaults of image classification by the number, the size and the labels of the images."""

from foveal.data.images.image_facts import ImageFacts
from foveal.interop.published.efficientnet import NAME as PRETRAINED
from foveal.models.image_networks import published_input
from foveal.tasks.defaults import Defaults, DefaultsRequest

MAX_FEW_PHOTOS, MAX_FEW_SMALL = 5000, 2000
"""Photos, and small images, for which the default classifier is in closed form, at most."""
MIN_PHOTO_SIDE, MIN_GRAY_PHOTO_SIDE = 64, 128
"""Shorter side in pixels from which images count as photos: in color, and in gray. Drawn signs and
scanned characters are often gray, and smaller."""
CLOSED_FORM = ("model.head_fit=ridge", "training.budget=0steps", "data.valid_fraction=0.0")
MIN_BATCH, BATCHES_PER_EPOCH = 8, 16
"""The smallest batch, and the number of batches in an epoch of few images."""
PRESET_BATCH, PRESET_LR = 128, 0.1
"""Batch size and rate of the preset; the rate of other batches is in proportion (Goyal et al. 2017)."""
MAX_PHOTO_BATCH, PHOTO_WARMUP = 32, 5
"""The largest batch of photos, and the steps of warm-up for weights that are already trained."""


def image_defaults(facts: ImageFacts, request: DefaultsRequest, preset: str, batch: int) -> Defaults:
    """Return the defaults. `batch` is the batch size of the preset `preset`, or the user's.

    Few photos start from published weights, and few small images get fixed features: in both, the classifier
    is in closed form, unless the user wants to train.
    """
    if not facts.rows or not facts.side:
        return Defaults(preset)
    photos, images = are_photos(facts), images_in_words(facts)
    most = MAX_FEW_PHOTOS if photos else MAX_FEW_SMALL
    if facts.rows > most:
        return _without_flips(facts, Defaults(preset))
    if photos and request.pretrained:
        return _few_photos(facts, request, preset, f"{images} are few photos")
    if not request.trains:
        channels = f"data.image.channels={3 if facts.color else 1}"
        reason = f"{images} are few: fixed features of their patches and a classifier in closed form"
        return Defaults("patch-similarities", reason, (channels,), undo=f"--model {preset}")
    few = few_batch(facts.rows, batch) if batch == PRESET_BATCH else batch
    settings = (
        f"data.image.batch_size={few}",
        f"optimizer.lr={PRESET_LR * few / PRESET_BATCH:g}",
        "optimizer.clip_norm=1.0",
        f"schedule.warmup_steps={BATCHES_PER_EPOCH}",
    )
    defaults = Defaults(preset, f"{images} are few", settings, undo=f"--model {preset}")
    return _without_flips(facts, defaults)


def may_start_from_weights(request: DefaultsRequest, channels: int) -> bool:
    """Return whether published weights may be fetched, and read images of so many channels."""
    return request.pretrained and channels == published_input(PRETRAINED)[0]


def are_photos(facts: ImageFacts) -> bool:
    """Return whether the images are large enough to be photos."""
    return facts.side >= (MIN_PHOTO_SIDE if facts.color else MIN_GRAY_PHOTO_SIDE)


def images_in_words(facts: ImageFacts) -> str:
    """Return the number, the kind and the size of the images."""
    kind = "color" if facts.color else "gray"
    return f"{facts.rows:,} {kind} images of about {facts.side} pixels"


def few_batch(rows: int, largest: int) -> int:
    """Return a power of two such that an epoch has about `BATCHES_PER_EPOCH` batches, `largest` at most."""
    share = max(MIN_BATCH, rows // BATCHES_PER_EPOCH)
    return min(largest, 1 << (share.bit_length() - 1))


def _few_photos(facts: ImageFacts, request: DefaultsRequest, preset: str, reason: str) -> Defaults:
    if not request.trains:
        reason = f"{reason}: features learned from other photos, and a classifier in closed form"
        return Defaults(preset, reason, CLOSED_FORM, PRETRAINED, "--pretrained no")
    settings = (
        "model.head_fit=ridge",
        f"data.image.batch_size={few_batch(facts.rows, MAX_PHOTO_BATCH)}",
        f"schedule.warmup_steps={PHOTO_WARMUP}",
    )
    reason = f"{reason}: features learned from other photos, and a classifier in closed form, trained on"
    return _without_flips(facts, Defaults(preset, reason, settings, PRETRAINED, "--pretrained no"))


def _without_flips(facts: ImageFacts, defaults: Defaults) -> Defaults:
    """Return the defaults without mirror images if the images are gray and their labels characters, which
    mirror images of characters are not. Photos in color may have such labels as mere numbers."""
    if facts.color or not facts.has_characters:
        return defaults
    reason = f"{defaults.reason}, and " if defaults.reason else ""
    undo = f"{defaults.undo} or " if defaults.undo else ""
    return Defaults(
        defaults.preset,
        f"{reason}mirror images of single characters ({', '.join(sorted(facts.labels)[:3])} ...) mean "
        "something else",
        (*defaults.settings, "data.augment.flip=false"),
        defaults.weights,
        f"{undo}data.augment.flip=true",
    )
