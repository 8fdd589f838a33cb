"""A text for each measured series."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.series import SeriesTask


class SeriesCaptioningTask(SeriesTask, CaptioningTask):
    name = "series-captioning"
    purpose = "Describe a series by a text."
    preset = "series-captioning"
    reads_files = "series"
    examples_in_words = "series with a text"
    no_attention_map = "series"
    few_texts = FewTexts(
        1000,
        "series with a text",
        "A model that starts from nothing has to see each word with several series",
        "more series, texts of fewer words, or a field label for each series (series-classification)",
    )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 10 for a table of values with a text, and no label."""
        text = str(named.get("text", "text"))
        labeled = {"label", "labels"} & data.columns
        if data.kind != "table" or not {"values", text} <= data.columns or labeled:
            return NO_FIT
        return Fit(10, f"there are the columns values and {text}, and no label")
