"""One label for each measured series."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.defaults import ClosedForm, Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.labeling import ClassificationTask
from foveal.tasks.shapes.series import SeriesLabelingTask

MANY_SERIES = 8000
"""The most series whose classifier is fitted in closed form; `ops/ridge.py` solves few more rows."""
FEW = ClosedForm("minirocket", MANY_SERIES, "series", "fixed convolutions")
LEARNED = "series-inception"
"""The preset for many series."""
LEARNED_SETTINGS = ("data.series.batch_size=64", "data.batch_tokens=32768", "training.budget=15m")


class SeriesClassificationTask(SeriesLabelingTask, ClassificationTask):
    name = "series-classification"
    purpose = "Label each series."
    preset = "series-classification"
    columns = ("label",)
    datasets = ("basic-motions", "japanese-vowels")
    loss_unit = "series"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 25 for a table of series with a named label, 13 for values with a label, 1 for files of
        series."""
        label = str(named.get("label", "label"))
        is_table = data.kind == "table" and {"values", label} <= data.columns
        is_named = is_table and "label" in named and "text" not in named
        if is_named and isinstance(data.train.first_row.get("values"), list):
            return Fit(25, f"there are the columns values and {label}, which is named")
        if data.kind == "table" and {"values", "label"} <= data.columns:
            return Fit(13, "there are the columns values and label")
        return Fit(1, data.evidence.reason) if data.kind == "series" else NO_FIT

    def defaults(self, request: DefaultsRequest) -> Defaults:
        count = len(self.training_targets(request.data))
        if count <= MANY_SERIES:
            return FEW.defaults(0 if request.trains else count, self.preset)
        reason = f"{count:,} series are many: convolutions that are learned are ahead of recurrent layers"
        return Defaults(LEARNED, reason, LEARNED_SETTINGS, undo=f"--model {self.preset}")
