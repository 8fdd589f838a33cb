"""The section `data` of a config: how data are read, and how they become batches."""

import re
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, field_validator

from foveal.config.values import (
    Fraction,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ReadIf,
    Size,
    StrictModel,
)

TokenizerName = Literal["character", "byte", "bpe", "word", "wordpiece", "sentencepiece"]


class ImageConfig(StrictModel):
    """The section `data.image`: how images are read."""

    size: Size = 32
    """Side of the square that is read of an image, in pixels."""
    channels: Literal[1, 3] = 3
    """Channels of an image: 3 for colors, 1 for gray."""
    batch_size: PositiveInt = 128
    """Images in a batch."""
    tta: Literal["none", "flip", "flip-shift", "ten-crop"] = "none"
    """Views of a held-out image that predictions are averaged over: none, flip, flip-shift or ten-crop.

    The center; with its mirror image; with both shifted by a pixel; or with the four corners."""
    tta_scales: str = "1"
    """Scales at which a held-out image is seen, such as 1 or 1,1.125,1.25."""

    @field_validator("tta_scales")
    @classmethod
    def _numbers(cls, scales: str) -> str:
        for scale in scales.split(","):
            try:
                fits = 0.01 <= float(scale) <= 100
            except ValueError:
                fits = False
            if not fits:
                raise ValueError("expected numbers from 0.01 to 100, such as 1,1.125,1.25")
        return scales


class AugmentConfig(StrictModel):
    """The section `data.augment`: how training images are changed, in another way in each epoch."""

    crop: Literal["none", "pad", "reflect-pad", "random-resized"] = "none"
    """Random crops of training images: none, pad, reflect-pad or random-resized.

    `pad` and `reflect-pad` shift the image by a few pixels; beyond the border stands the mean color, or the
    mirror image. `random-resized` cuts out 8 % to all of the area, and resizes it (the ResNet recipe)."""
    padding: Annotated[Size, ReadIf("crop", "pad", "reflect-pad")] = 4
    """Largest shift of a padded crop to each side, in pixels."""
    flip: bool = False
    """Mirrors half of the images left to right, the other half in the next epoch."""
    color_jitter: Fraction = 0.0
    """Brightness, contrast and saturation are each multiplied by a factor in 1 +- color_jitter."""
    cutout: Annotated[int, Field(ge=0)] = 0
    """Side of a square that is blotted out, in pixels; 0 for none."""
    mixup: NonNegativeFloat = 0.0
    """Images are mixed with others, with weights from Beta(mixup, mixup); 0 for none."""


class SeriesConfig(StrictModel):
    """The section `data.series`: how series are standardized, batched, and changed in training."""

    standardize: Literal["channel", "series"] = "channel"
    """Whose mean becomes 0, and deviation 1: channel (of all training series) or series (each by itself).

    `series` is of each channel of a series by itself, so its level and its scale are lost."""
    batch_size: Annotated[int, Field(ge=0)] = 0
    """Series in a training batch, taken at random; 0 for series of like lengths by data.batch_tokens."""
    jitter: NonNegativeFloat = 0.0
    """Deviation of the noise that is added to each standardized value of a training series."""
    scaling: NonNegativeFloat = 0.0
    """Deviation of the logarithm of a random factor for each channel of a training series."""


class DataConfig(StrictModel):
    """The section `data`: how text, audio, series and images become batches.

    The settings of a single task are fields of a subclass, in the task's own file or folder.
    """

    tokenizer: TokenizerName = "character"
    """Tokenizer of texts: character, byte, bpe or word; wordpiece and sentencepiece come with a model."""
    vocab_size: Annotated[
        int, Field(ge=257, le=65536), ReadIf("tokenizer", "bpe"), ReadIf("target_tokenizer", "bpe")
    ] = 4096
    """Size of a BPE vocabulary at most; the other tokenizers find their own."""
    target_tokenizer: Annotated[
        Literal["same", "character", "byte", "bpe", "word"], ReadIf("shared_vocabulary", False)
    ] = "same"
    """Tokenizer of the target texts: same (as data.tokenizer), character, byte, bpe or word."""
    encoding: str = ""
    """Encoding of lines of tables, and of texts in folders, that are not UTF-8, such as cp1252 or latin-1."""
    text: str = "text"
    """Column of a table that has the text."""
    source: str = "source"
    """Column of a table that has the text to translate."""
    target: str = "target"
    """Column of a table that has the translation."""
    label: str = "label"
    """Column of a table that has the label."""
    shared_vocabulary: bool = False
    """Source and target share one vocabulary, and one embedding."""
    sample_rate: Annotated[int, Field(ge=1000, le=1_000_000)] = 16_000
    """Samples per second that recordings are resampled to."""
    mel_bins: Annotated[int, Field(ge=1, le=512)] = 80
    """Mel bands of a frame."""
    max_seconds: PositiveFloat = 60.0
    """Length of the longest recording that is used; longer ones are skipped."""
    max_length: Size = 256
    """Length of the longest example, in tokens, steps or frames; longer ones are skipped.

    Longer texts to classify, questions and choices are cut."""
    context_length: Size = 128
    """Tokens in a window, or in a chunk of truncated backpropagation."""
    batch_tokens: PositiveInt = 4096
    """Tokens in a batch: of a corpus, data.batch_tokens // data.context_length rows."""
    series: SeriesConfig = SeriesConfig()
    image: ImageConfig = ImageConfig()
    augment: AugmentConfig = AugmentConfig()
    valid_fraction: Fraction = 0.05
    """Fraction held out to choose the best weights, where neither --valid nor --test is given."""
    test_fraction: Fraction = 0.05
    """Fraction held out for the reported score, where neither --valid nor --test is given."""
    group_pattern: str = ""
    """Regular expression of what differs among texts, or file names, that belong together.

    The rows of such a group are held out as `data.hold_out` says."""
    group_by: Annotated[Literal["text", "file-name"], ReadIf("group_pattern")] = "text"
    """What data.group_pattern matches: text (the target texts) or file-name."""
    hold_out: Annotated[Literal["groups", "variants"], ReadIf("group_pattern")] = "groups"
    """What is held out: groups (all rows of some), or variants (every third row of each)."""

    @field_validator("encoding")
    @classmethod
    def _encoding(cls, name: str) -> str:
        try:
            fits = not name or "a".encode(name) == b"a"
        except (LookupError, UnicodeError, TypeError, ValueError):
            fits = False
        if not fits:
            raise ValueError(
                "no encoding of text in which ASCII stays as it is, such as cp1252, cp1251 or gb18030"
            )
        return name

    @field_validator("group_pattern")
    @classmethod
    def _pattern(cls, group: str) -> str:
        try:
            re.compile(group)
        except re.error as error:
            raise ValueError(f"no pattern that Python's re can read: {error}") from None
        return group


class DataTable(DataConfig):
    """The section `data` as written: the settings that any task may read, and others that the task checks."""

    model_config = ConfigDict(extra="allow")
