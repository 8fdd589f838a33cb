"""A translation for each text."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.metrics.translation import bleu_if_meaningful, chrf
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.text_pairs import TextToTextTask


class TranslationTask(TextToTextTask):
    name = "translation"
    purpose = "Translate a text."
    preset = "translation"
    metrics = (bleu_if_meaningful, chrf)

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 25 for a named source or target, 16 for a table with both, 1 for two aligned files."""
        if data.kind in ("table", "text") and {"source", "target"} & named.keys():
            return Fit(25, "data.source or data.target names a column")
        if data.kind == "table" and {"source", "target"} <= data.columns:
            return Fit(16, "there are the columns source and target")
        return Fit(1, data.evidence.reason) if data.kind == "aligned" else NO_FIT
