"""A label for each step of a measured series."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.labeling import TaggingTask
from foveal.tasks.shapes.series import SeriesLabelingTask


class SeriesTaggingTask(SeriesLabelingTask, TaggingTask):
    name = "series-tagging"
    purpose = "Label each step of a series."
    preset = "series-tagging"
    loss_unit = "step"
    place = "step"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 12 for a table of values with labels, 2 for a file of series with labels."""
        if data.kind == "table" and {"values", "labels"} <= data.columns:
            return Fit(12, "there are the columns values and labels")
        if data.kind == "series" and "labels" in data.columns:
            return Fit(2, f"{data.evidence.reason} with a label for each step")
        return NO_FIT
