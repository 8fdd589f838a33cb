"""A translation for each text."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.metrics.translation import bleu_if_meaningful, chrf
from foveal.tasks.shapes.text_pairs import TextToTextTask


class TranslationTask(TextToTextTask):
    name = "translation"
    purpose = "Translate a text."
    preset = "translation"
    metrics = (bleu_if_meaningful, chrf)

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 25 for a named source or target, 16 for a table with both, 1 for two aligned files."""
        if data.kind in ("table", "text") and {"source", "target"} & named.keys():
            return 25
        if data.kind == "table" and {"source", "target"} <= data.columns:
            return 16
        return int(data.kind == "aligned")
