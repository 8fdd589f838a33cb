"""Recordings that can't be used, that are nearly silent, or whose loudest parts are cut off."""

from collections.abc import Iterator

from foveal.studies.data_check.checked_data import CheckedData, place
from foveal.studies.data_check.finding import Finding, findings_on

QUIET = 1e-3
"""The loudest sample of a recording that is nearly silent: -60 dB of full scale."""
MAX_CLIPPED = 0.01
"""The part of samples at full scale from which on a recording is distorted."""


def check_recordings(data: CheckedData) -> Iterator[Finding]:
    """Yield recordings that can't be used, that are nearly silent, or whose loudest parts are cut."""
    if data.input_field != "file":
        return
    unusable, quiet, clipped = list[str](), list[str](), list[str]()
    for (split, row), recording in zip(data.rows(), data.recordings, strict=True):
        if isinstance(recording, str):
            unusable.append(recording)
        elif recording.loudest < QUIET:
            quiet.append(place(split, row))
        elif recording.at_full_scale > MAX_CLIPPED:
            clipped.append(place(split, row))
    yield from findings_on(
        "recordings", "problem", unusable, "{} that can't be used", "fix them, or leave them out"
    )
    yield from findings_on(
        "recordings", "problem", quiet, "{} below -60 dB, which is nearly silent", "record them again"
    )
    yield from findings_on(
        "recordings", "note", clipped, "{} cut off at full scale", "record them with less gain"
    )
