"""One label for each text."""

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.text import text_classification
from foveal.data.text.text_classification import TextClassificationProcessor
from foveal.encoders.text import TextEncoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.examples import text_encoder_for
from foveal.tasks.labeling import ClassificationTask, summarize_labels


class TextClassificationTask(ClassificationTask):
    def __init__(self) -> None:
        super().__init__(text_classification)

    def encoder(self, config: Config, processor: TextClassificationProcessor | None = None) -> TextEncoder:
        return text_encoder_for(config, None if processor is None else processor.source)

    def summarize(
        self, config: Config, data: PreparedData[TextClassificationProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        source, labels = data.processor.source, data.processor.labels
        told = f"text-classification: {summarize_labels(labels)} from {source.size:,} {source.kind} tokens"
        return TaskSummary("labelled texts", told, len(labels), "tokens")
