"""What is in a recording: how long and how loud it is."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_features import read_audio

FULL_SCALE = 0.999
"""A sample from which on the loudest parts are cut off."""


class DecodedRecording(NamedTuple):
    """The length of a recording, its loudest sample, and the part of its samples at full scale."""

    seconds: float
    loudest: float
    at_full_scale: float


def decode_recording(file: Path, config: DataConfig) -> DecodedRecording | str:
    """Return what is in a recording, or why it can't be used."""
    try:
        samples = np.abs(read_audio(file, config.sample_rate, config.max_seconds))
    except UserError as error:
        return str(error)
    at_full_scale = float((samples >= FULL_SCALE).mean())
    return DecodedRecording(len(samples) / config.sample_rate, float(samples.max()), at_full_scale)
