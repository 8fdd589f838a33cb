"""Recordings that can't be used, that are nearly silent, or whose loudest parts are cut off."""

from collections.abc import Iterator

import numpy as np

from foveal.core.errors import UserError
from foveal.data.audio.audio_features import read_audio
from foveal.data.audio.audio_source import AudioSource
from foveal.studies.data_check.checked_data import CheckedData, place
from foveal.studies.data_check.finding import Finding, findings_on

QUIET = 1e-3
"""The loudest sample of a recording that is nearly silent: -60 dB of full scale."""
CLIPPED, MAX_CLIPPED = 0.999, 0.01
"""A sample at the limit, and the part of samples at the limit from which on a recording is distorted."""


def check_recordings(data: CheckedData) -> Iterator[Finding]:
    """Yield recordings that can't be used, that are nearly silent, or whose loudest parts are cut."""
    if not isinstance(data.source, AudioSource):
        return
    unusable, quiet, clipped = list[str](), list[str](), list[str]()
    for split, row in data.rows():
        try:
            samples = read_audio(row.fields["file"], data.config.sample_rate, data.config.max_seconds)
        except UserError as error:
            unusable.append(str(error))
            continue
        loudness = np.abs(samples)
        if loudness.max() < QUIET:
            quiet.append(place(split, row))
        elif (loudness >= CLIPPED).mean() > MAX_CLIPPED:
            clipped.append(place(split, row))
    yield from findings_on(
        "recordings", "problem", unusable, "{} that can't be used", "mend them, or leave them out"
    )
    yield from findings_on(
        "recordings", "problem", quiet, "{} below -60 dB, which is nearly silent", "record them again"
    )
    yield from findings_on(
        "recordings", "note", clipped, "{} cut off at full scale", "record them with less gain"
    )
