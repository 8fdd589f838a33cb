"""A text for each measured series."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.series import SeriesTask


class SeriesCaptioningTask(SeriesTask, CaptioningTask):
    name = "series-captioning"
    purpose = "Describe a series by a text."
    preset = "series-captioning"
    reads_files = "series"
    examples_in_words = "series with a text"
    no_attention_map = "series"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 10 for a table of values with a text, and no label."""
        columns = {"values", str(named.get("text", "text"))}
        labeled = {"label", "labels"} & data.columns
        return 10 if data.kind == "table" and columns <= data.columns and not labeled else 0
