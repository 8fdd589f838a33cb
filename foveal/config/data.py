"""What is read, and how it becomes batches: the config's section `data`."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from foveal.config.values import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt, Size, StrictModel

TokenizerName = Literal["character", "byte", "bpe", "word", "wordpiece"]


class ImageConfig(StrictModel):
    """What is seen of an image."""

    size: Size = 32
    """Side of the square, in pixels."""
    channels: Literal[1, 3] = 3
    """Colours, or grey."""
    batch_size: PositiveInt = 128
    """Images in a batch."""
    tta: Literal["none", "flip", "flip-shift", "ten-crop"] = "none"
    """What is seen of a held-out image, and answers averaged over: the centre, with its mirror image, with
    both a pixel aside, or with the four corners."""
    tta_scales: str = "1"
    """At which scales: `1`, or several as `1,1.125,1.25`."""

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
    """How the images to train on are changed, each in another way in each epoch."""

    crop: Literal["none", "pad", "reflect-pad", "random-resized"] = "none"
    """Shifted by a few pixels, with the mean colour or the mirror image of the border beyond; or cut from 8 %
    to all of the area and resized (the ResNet recipe)."""
    padding: Size = 4
    """Pixels to each side at most."""
    flip: bool = False
    """Left to right, half of them in one epoch and the others in the next."""
    color_jitter: Fraction = 0.0
    """Brightness, contrast and saturation, each by a factor in 1 +- jitter."""
    cutout: Annotated[int, Field(ge=0)] = 0
    """Side of a square that is blotted out."""
    mixup: NonNegativeFloat = 0.0
    """Images are mixed with others by a share from Beta(mixup, mixup); 0 means none."""


class DataConfig(StrictModel):
    """How text, sound, series and images become batches."""

    tokenizer: TokenizerName = "character"
    vocab_size: Annotated[int, Field(ge=257, le=65536)] = 4096
    """Size of a BPE vocabulary (the other tokenizers find their own)."""
    target_tokenizer: Literal["same", "character", "byte", "bpe", "word"] = "same"
    """Of the target of a pair, if another kind."""
    text: str = "text"
    """The column of a table that holds the text."""
    source: str = "source"
    """The column of the sentence to translate."""
    target: str = "target"
    """The column of its translation."""
    label: str = "label"
    """The column of a text's label."""
    tags: str = "upos"
    """The column of the tags in CoNLL-U; other tables have their tags last, or under `tags`."""
    question: str = "question"
    """The column of a question about an image."""
    answer: str = "answer"
    """The column of its answer."""
    choices: str = "choices"
    """The column of the answers to choose among, a list, or texts with bars between them."""
    history: str = "history"
    """The column of what was said before, if there is one; `none` leaves it out."""
    shared_vocabulary: bool = False
    """One vocabulary, and one embedding, for source and target."""
    sample_rate: Annotated[int, Field(ge=1000, le=1_000_000)] = 16_000
    """Samples a second that recordings are brought to."""
    mel_bins: Annotated[int, Field(ge=1, le=512)] = 80
    """Mel bands of a frame."""
    max_seconds: PositiveFloat = 60.0
    """Of the longest recording; longer ones are skipped."""
    max_length: Size = 256
    """Tokens of a source or target, steps of a series, frames of a clip: longer ones are skipped, longer
    texts to classify are cut."""
    context_length: Size = 128
    """Tokens in a window, or in a chunk of truncated backpropagation."""
    batch_tokens: PositiveInt = 4096
    """Tokens in a batch: batch_tokens // context rows."""
    image: ImageConfig = ImageConfig()
    augment: AugmentConfig = AugmentConfig()
    valid_fraction: Fraction = 0.05
    """Share held out to choose the best weights, where no --valid is given."""
    test_fraction: Fraction = 0.05
    """Share held out for the reported figure, where neither --valid nor --test is given."""
    group_pattern: str = ""
    """A pattern (of Python's `re`) of what texts about variants of one thing differ in."""
    group_by: Literal["text", "file-name"] = "text"
    """Of what that is a pattern: of the texts to be written, or of the names of the files."""
    hold_out: Literal["groups", "variants"] = "groups"
    """What is held out of such things: all variants of some, or every third variant of each."""

    @field_validator("group_pattern")
    @classmethod
    def _pattern(cls, group: str) -> str:
        try:
            re.compile(group)
        except re.error as error:
            raise ValueError(f"no pattern that Python's re can read: {error}") from None
        return group
