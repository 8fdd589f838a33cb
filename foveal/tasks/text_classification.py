"""One label for each text."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveal.data.open import OpenedData
from foveal.data.text.text_source import TextSource
from foveal.models.encoder_registry import TokenSizes, make_encoder
from foveal.tasks.defaults import ClosedForm, Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.examples import token_sizes, tokens_in_words
from foveal.tasks.shapes.labeling import ClassificationTask

PRETRAINED = "--from minilm"
PATIENCE = "training.patience"
EVALUATIONS_WAITED = 5
"""Evaluations in a row without a new best after which a training by default stops."""


class TextClassificationTask(ClassificationTask):
    name = "text-classification"
    purpose = "Label each text."
    preset = "text-classification"
    source = TextSource()
    source_kind = "text"
    encoders = ("text", "ngrams", "elmo")
    encoder_source = "text"
    columns = ("text", "label")
    datasets = ("movie-reviews",)
    closed_form = ClosedForm("text-ngrams", 5000, "texts", "n-grams of characters")
    loss_unit = "text"
    examples_in_words = "labeled texts"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 24 for a named label, 15 for a table with both columns, 2 for a folder of texts for each
        class, 1 for folders that may be classes."""
        if data.kind in ("table", "text") and "label" in named:
            return Fit(24, f"data.label={named['label']} names labels")
        text = str(named.get("text", "text"))
        if data.kind == "table" and {text, "label"} <= data.columns:
            return Fit(15, f"there are the columns {text} and label")
        if data.kind != "texts" or data.classes_of_texts is None:
            return NO_FIT
        return Fit(2 if data.classes_of_texts.is_sure else 1, data.evidence.reason)

    def defaults(self, request: DefaultsRequest) -> Defaults:
        defaults = super().defaults(request)
        if request.trains:
            return defaults
        if defaults.reason:
            return replace(defaults, undo=f"{defaults.undo}, or {PRETRAINED} for English texts, in minutes")
        reason = (
            "a network from scratch can learn its texts by heart: training stops after "
            f"{EVALUATIONS_WAITED} evaluations without a new best"
        )
        settings = (f"{PATIENCE}={EVALUATIONS_WAITED}",)
        return Defaults(self.preset, reason, settings, undo=f"{PATIENCE}=0")

    @property
    def source_sizes(self) -> TokenSizes:
        return token_sizes(self.config, None if self.processor is None else self.processor.source)

    def encoder(self) -> Any:
        return make_encoder(self.config.model.encoder, self.source_sizes)

    def source_in_words(self) -> str:
        return tokens_in_words(self.processor.source)
