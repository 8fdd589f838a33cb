"""A text for each clip."""

from collections.abc import Mapping
from shlex import quote

from foveal.data.open import OpenedData
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.clips import ClipTask
from foveal.tasks.shapes.few_texts import FewTexts


class VideoCaptioningTask(ClipTask, CaptioningTask):
    name = "video-captioning"
    purpose = "Describe a clip by a text."
    preset = "video-captioning"
    reads_files = "clips"
    examples_in_words = "clips with a text"
    no_attention_map = "clips"
    few_texts = FewTexts(
        2000,
        "clips with a text",
        "Clips of real life are captioned from 2,000 clips with 40 texts each, by networks that have seen a "
        "million labeled images before (Venugopalan et al. 2015), and there are no published weights of "
        "clips to start from",
        "more clips, several texts for each, or texts of fewer words",
    )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 2 for clips with a text and no label."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        if data.kind != "clips" or text not in data.columns or label in data.columns:
            return NO_FIT
        return Fit(2, f"{data.evidence.reason}, with a column {text} and no {label}")

    def classifying_options(self, data: OpenedData) -> str:
        label = quote(f"data.label={self.target.column(self.config.data)}")
        return f"--task video-classification {label}"

    def source_in_words(self) -> str:
        return f"frames of {super().source_in_words()}"
