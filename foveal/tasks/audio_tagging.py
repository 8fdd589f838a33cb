"""A label for each frame of a recording."""

from collections.abc import Mapping
from typing import Any

from foveal.data.audio.frame_places import FramePlaceBatches, share_places
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import RowIndices
from foveal.data.open import OpenedData
from foveal.data.pairs.labels import LABELS_COLUMN
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.audio import AudioTask
from foveal.tasks.shapes.labeling import TaggingTask
from foveal.training.protocols import Batches


class AudioTaggingTask(AudioTask, TaggingTask):
    """Frames are 10 ms apart. Frames that the encoder combines into a single vector share its place."""

    name = "audio-tagging"
    purpose = "Label each frame of a recording."
    preset = "audio-tagging"
    loss_unit = "frame"
    examples_in_words = "labeled recordings"
    speed_unit = "frames"
    place = "frame"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 3 for recordings whose table has labels of frames, but neither text nor label."""
        others = {str(named.get(name, name)) for name in ("text", "label")}
        has_labels = LABELS_COLUMN in data.columns and not others & data.columns
        if data.kind != "audio" or not has_labels:
            return NO_FIT
        return Fit(3, f"{data.evidence.reason}, which has a column {LABELS_COLUMN}")

    def train_batches(self, data: Any) -> Batches:
        return self._with_places(super().train_batches(data))

    def eval_batch(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        return share_places(super().eval_batch(examples, rows), self._frames_per_vector)

    def example_batches(self, examples: Any) -> Batches:
        return self._with_places(super().example_batches(examples))

    def _with_places(self, batches: Batches) -> FramePlaceBatches:
        return FramePlaceBatches(batches, self._frames_per_vector)

    @property
    def _frames_per_vector(self) -> int:
        return getattr(self.model.encoder, "frames_per_vector", 1)
