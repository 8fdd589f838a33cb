"""One label for each text."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.data.text.text_source import TextSource
from foveal.encoders.text import TextEncoder
from foveal.tasks.shapes.examples import text_encoder_for, tokens_in_words
from foveal.tasks.shapes.labeling import ClassificationTask


class TextClassificationTask(ClassificationTask):
    name = "text-classification"
    purpose = "Label each text."
    preset = "text-classification"
    source = TextSource()
    source_kind = "text"
    encoders = ("text",)
    columns = ("text", "label")
    datasets = ("movie-reviews",)
    loss_unit = "text"
    examples_in_words = "labeled texts"
    speed_unit = "tokens"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 24 for a named label, 15 for a table with both columns."""
        if data.kind in ("table", "text") and "label" in named:
            return 24
        return 15 if data.kind == "table" and {str(named.get("text", "text")), "label"} <= data.columns else 0

    def encoder(self) -> TextEncoder:
        return text_encoder_for(self.config, None if self.processor is None else self.processor.source)

    def source_in_words(self) -> str:
        return tokens_in_words(self.processor.source)
