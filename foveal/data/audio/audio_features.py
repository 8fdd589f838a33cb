"""Decode recordings to samples, and compute log-mel frames."""

import json
import re
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from foveal.config.old_names import upgrade_fields
from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.standardize import FloatArray, Statistics, explain_read_errors
from foveal.data.files.utf8 import open_file
from foveal.ops.audio.log_mel import log_mel

FEATURES_FILE = "features.json"
MAX_AMPLITUDE = 16.0
"""Samples are between -1 and 1, or a little beyond after decoding. Larger samples have another scale."""
MAX_RATE_DENOMINATOR = 640
"""Largest denominator of old rate / new rate, needed for 11,025 to 16,000. Others err by less than 0.1 %."""
UNKNOWN_LENGTH_BYTES = 0x7FFF0000
"""A wav that claims at least this many bytes was written without knowing its length."""
MIN_SAMPLE_RATE, MAX_SAMPLE_RATE = 1_000, 1_000_000
"""Limits of a recording's samples per second."""


@dataclass(frozen=True)
class LogMelSettings:
    """Settings of log-mel frames: samples per second, mel bands, and the longest recording in seconds."""

    sample_rate: int = 16_000
    mel_bins: int = 80
    max_seconds: float = 60.0

    def frames(self, path: Path) -> FloatArray:
        """Return the log-mel frames (S, bins) of the recording at `path`.

        Raises: UserError: `read_audio` can't use the recording.
        """
        samples = torch.from_numpy(read_audio(path, self.sample_rate, self.max_seconds))
        return log_mel(samples, self.sample_rate, self.mel_bins).numpy()


@dataclass(frozen=True)
class AudioFeatureExtractor:
    """The processor of recordings: frames, standardized by the statistics of the training split's frames."""

    settings: LogMelSettings
    statistics: Statistics

    def __call__(self, path: Path) -> FloatArray:
        """Return the standardized frames (S, bins) of the recording at `path`.

        Raises: UserError: `read_audio` can't use the recording.
        """
        return self.statistics.standardize(self.settings.frames(path))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "AudioFeatureExtractor":
        """Read what `to_json` wrote.

        Raises: UserError: the file is missing or damaged.
        """
        with explain_read_errors(folder / FEATURES_FILE):
            fields = parse_json((folder / FEATURES_FILE).read_bytes())
            settings = LogMelSettings(**upgrade_fields(LogMelSettings, fields["settings"]))
            return cls(settings, Statistics.from_fields(fields["statistics"]))


def read_audio(path: Path, sample_rate: int, max_seconds: float) -> NDArray[np.float32]:
    """Read a wav, flac, ogg or mp3 as samples (N,) in [-1, 1], at `sample_rate` per second.

    Channels are averaged.

    Raises: UserError: the file is not a recording, cut off, empty, longer than `max_seconds`, silent, or has
    NaN or infinity.
    """
    samples, file_rate = _decode(path, max_seconds)
    if not len(samples):
        raise UserError(f"{path}: no samples in it; record it again or leave it out")
    if not np.isfinite(samples).all():
        raise UserError(f"{path}: has NaN or infinity; fix the recording or leave it out")
    if np.abs(samples).max() > MAX_AMPLITUDE:
        raise UserError(f"{path}: samples up to {np.abs(samples).max():.0f}; scale the samples to -1 .. 1")
    mono = samples.mean(1)
    if (mono == mono[0]).all():
        raise UserError(f"{path}: silent: all samples are equal; record it again or leave it out")
    if file_rate != sample_rate:
        mono = _resampler(file_rate, sample_rate)(torch.from_numpy(mono), full=True).numpy()
    return mono.clip(-1, 1)


def _decode(path: Path, max_seconds: float) -> tuple[NDArray[np.float32], int]:
    """Return the samples (N, channels) of a file, and its samples per second."""
    import soundfile

    with open_file(path) as file:
        try:
            with soundfile.SoundFile(file.fileno(), closefd=False) as sound:
                if not MIN_SAMPLE_RATE <= sound.samplerate <= MAX_SAMPLE_RATE:
                    raise UserError(f"{path}: {sound.samplerate} samples per second; fix the recording")
                if sound.frames > max_seconds * sound.samplerate:
                    seconds = sound.frames / sound.samplerate
                    raise UserError(f"{path}: {seconds:.1f} s long, more than {max_seconds:g} s; cut it")
                samples = sound.read(dtype="float32", always_2d=True)
                if len(samples) < sound.frames or _is_truncated(sound.extra_info):
                    raise UserError(f"{path}: cut off; get the whole file")
                return samples, sound.samplerate
        except soundfile.LibsndfileError:  # its message is about other things, such as pipes
            raise UserError(f"{path}: not readable as wav, flac, ogg or mp3; get the file again") from None


def _is_truncated(log: str) -> bool:
    """Return whether libsndfile has noticed that the end of a wav or ogg is missing.

    A wav that was written to a pipe claims the largest possible length, but is complete.
    """
    claims = re.search(r"data : (\d+) \(should be (\d+)\)", log)
    missing = claims is not None and int(claims[2]) < int(claims[1]) < UNKNOWN_LENGTH_BYTES
    return missing or any(note in log for note in ("lacks an end-of-stream bit", "Junk after the last page"))


@cache
def _resampler(old: int, new: int) -> torch.nn.Module:
    """Return a resampler by band-limited interpolation (Smith and Gossett 1984)."""
    from julius.resample import ResampleFrac

    ratio = Fraction(old, new).limit_denominator(MAX_RATE_DENOMINATOR)
    return ResampleFrac(ratio.numerator, ratio.denominator)
