"""One label for each measured series."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.defaults import ClosedForm
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.labeling import ClassificationTask
from foveal.tasks.shapes.series import SeriesLabelingTask


class SeriesClassificationTask(SeriesLabelingTask, ClassificationTask):
    name = "series-classification"
    purpose = "Label each series."
    preset = "series-classification"
    datasets = ("basic-motions", "japanese-vowels")
    closed_form = ClosedForm("minirocket", 5000, "series", "fixed convolutions")
    loss_unit = "series"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 13 for a table of values with a label, 1 for files of series."""
        if data.kind == "table" and {"values", "label"} <= data.columns:
            return Fit(13, "there are the columns values and label")
        return Fit(1, data.evidence.reason) if data.kind == "series" else NO_FIT
