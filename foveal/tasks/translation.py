"""A translation for each text."""

from collections.abc import Mapping
from shlex import join

from foveal.data.open import OpenedData
from foveal.metrics.translation import bleu_if_meaningful, chrf
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.text_pairs import TextToTextTask

SOURCES, TARGETS = (
    ("instruction", "prompt", "question", "input"),
    ("output", "response", "completion", "answer"),
)
"""Usual names of columns of texts to be answered, and of the answers."""


class TranslationTask(TextToTextTask):
    name = "translation"
    purpose = "Translate a text."
    preset = "translation"
    metrics = (bleu_if_meaningful, chrf)
    few_texts = FewTexts(
        5000,
        "pairs",
        "Tuned models reach 17 BLEU with 100,000 words (5,000 sentences; Sennrich and Zhang 2019), this "
        "preset 39 with 29,000 simple sentences (Multi30k)",
        "some ten thousand pairs, or texts of few words",
    )

    def classifying_options(self, data: OpenedData) -> str:
        if data.kind == "aligned":
            return ""
        source, target = self.source.column(self.config.data), self.target.column(self.config.data)
        columns = join([f"data.text={source}", f"data.label={target}"])
        return f"--task text-classification {columns}"

    @classmethod
    def columns_hint(cls, data: OpenedData) -> str:
        """Name the settings for columns of questions or instructions, and of their answers."""
        names = (next((name for name in kind if name in data.columns), "") for kind in (SOURCES, TARGETS))
        source, target = names
        return f"is it pairs of texts? data.source={source} data.target={target}" if source and target else ""

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 25 for a named source or target, 16 for a table with both, 1 for two aligned files."""
        if data.kind in ("table", "text") and {"source", "target"} & named.keys():
            return Fit(25, "data.source or data.target names a column")
        if data.kind == "table" and {"source", "target"} <= data.columns:
            return Fit(16, "there are the columns source and target")
        return Fit(1, data.evidence.reason) if data.kind == "aligned" else NO_FIT
