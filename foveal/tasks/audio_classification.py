"""One label for each recording."""

from collections.abc import Mapping

from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.audio import AudioTask
from foveal.tasks.shapes.labeling import ClassificationTask, summarize_labels


class AudioClassificationTask(AudioTask, ClassificationTask):
    name = "audio-classification"
    purpose = "Label each recording."
    preset = "audio-classification"
    columns = ("label",)
    loss_unit = "recording"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 1 for recordings."""
        return int(data.kind == "audio")

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[Examples]]) -> TaskSummary:
        labels = prepared.processor.target.labels
        task = f"{self.name}: {summarize_labels(labels)} from {self.source_in_words()}"
        return TaskSummary("labeled recordings", task, len(labels), "frames")
