"""Series with a channel that never changes."""

from collections.abc import Iterator

from foveal.studies.data_check.checked_data import CheckedData, place
from foveal.studies.data_check.finding import Finding, findings_on


def check_series(data: CheckedData) -> Iterator[Finding]:
    """Yield series of which a channel has one value."""
    if data.input_field != "values":
        return
    flat = []
    for split, row in data.rows():
        values = row.fields["values"]
        channels = (values == values[:1]).all(0).nonzero()[0]
        if len(channels) and len(values) > 1:
            flat.append(f"{place(split, row)}: channel {', '.join(map(str, channels.tolist()))}")
    yield from findings_on(
        "series", "note", flat, "{} with a channel that never changes", "look at the sensor"
    )
