"""Recordings: from a file to samples, and on to log-mel frames."""

import json
import re
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.standardize import Statistics, Values, reading
from foveal.data.files.utf8 import open_file
from foveal.ops.audio.log_mel import log_mel

FILE = "features.json"
LOUDEST = 16.0
"""Samples lie between -1 and 1; decoders go a little further. What is far beyond is on another scale."""
STEPS = 640
"""Largest denominator of old / new rate: 11,025 to 16,000 needs it. Odder ones are off by less than 0.1 %."""
ENDLESS = 0x7FFF0000
"""Bytes that a wav claims at least whose writer did not know its length."""
SLOWEST, FASTEST = 1_000, 1_000_000
"""Samples a second that a recording may have."""


@dataclass(frozen=True)
class MelSettings:
    """How a recording becomes frames: samples a second, mel bands, and the longest recording in seconds."""

    rate: int = 16_000
    bins: int = 80
    longest: float = 60.0

    def frames(self, path: Path) -> Values:
        """Log-mel frames (S, bins) of the recording at `path`. Errors: those of `read_audio`."""
        samples = torch.from_numpy(read_audio(path, self.rate, self.longest))
        return log_mel(samples, self.rate, self.bins).numpy()


@dataclass(frozen=True)
class AudioFeatures:
    """The processor of recordings: frames, standardised by the statistics of the training part's frames."""

    settings: MelSettings
    statistics: Statistics

    def __call__(self, path: Path) -> Values:
        """(S, bins). Errors: those of `read_audio`."""
        return self.statistics.standardize(self.settings.frames(path))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "AudioFeatures":
        """What `to_json` gave. Errors: UserError names a file that is missing or damaged."""
        with reading(folder / FILE):
            fields = json.loads((folder / FILE).read_bytes())
            return cls(MelSettings(**fields["settings"]), Statistics.from_fields(**fields["statistics"]))


def read_audio(path: Path, rate: int, longest: float) -> NDArray[np.float32]:
    """Samples (N,) in [-1, 1], `rate` a second: wav, flac, ogg or mp3, its channels averaged.

    Errors: UserError for a file that is no recording or is cut off, and for one that is empty, longer than
    `longest` seconds, silent, or holds NaN or infinity.
    """
    samples, own = _decode(path, longest)
    if not len(samples):
        raise UserError(f"{path}: no samples in it; record it again or leave it out")
    if not np.isfinite(samples).all():
        raise UserError(f"{path}: holds NaN or infinity; mend the recording or leave it out")
    if np.abs(samples).max() > LOUDEST:
        raise UserError(f"{path}: samples up to {np.abs(samples).max():.0f}; scale them to -1 .. 1")
    mono = samples.mean(1)
    if (mono == mono[0]).all():
        raise UserError(f"{path}: silent, all samples are equal; record it again or leave it out")
    if own != rate:
        mono = _resampler(own, rate)(torch.from_numpy(mono), full=True).numpy()
    return mono.clip(-1, 1)


def _decode(path: Path, longest: float) -> tuple[NDArray[np.float32], int]:
    """Samples (N, channels) and how many there are in a second."""
    import soundfile

    with open_file(path) as file:
        try:
            with soundfile.SoundFile(file.fileno(), closefd=False) as sound:
                if not SLOWEST <= sound.samplerate <= FASTEST:
                    raise UserError(f"{path}: {sound.samplerate} samples a second; mend the recording")
                if sound.frames > longest * sound.samplerate:
                    seconds = sound.frames / sound.samplerate
                    raise UserError(f"{path}: {seconds:.1f} s long, more than {longest:g} s; cut it")
                samples = sound.read(dtype="float32", always_2d=True)
                if len(samples) < sound.frames or _is_cut_off(sound.extra_info):
                    raise UserError(f"{path}: cut off; get the whole file")
                return samples, sound.samplerate
        except soundfile.LibsndfileError:  # whose words are about other things, such as pipes
            raise UserError(f"{path}: not readable as wav, flac, ogg or mp3; get the file anew") from None


def _is_cut_off(log: str) -> bool:
    """Whether libsndfile noticed, reading the rest, that the end of a wav or ogg is missing.

    A wav that was written into a pipe claims to be as long as can be; it is whole.
    """
    claims = re.search(r"data : (\d+) \(should be (\d+)\)", log)
    missing = claims is not None and int(claims[2]) < int(claims[1]) < ENDLESS
    return missing or any(said in log for said in ("lacks an end-of-stream bit", "Junk after the last page"))


@cache
def _resampler(old: int, new: int) -> torch.nn.Module:
    """Band-limited interpolation (Smith and Gossett 1984)."""
    from julius.resample import ResampleFrac

    ratio = Fraction(old, new).limit_denominator(STEPS)
    return ResampleFrac(ratio.numerator, ratio.denominator)
