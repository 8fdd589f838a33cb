"""What the kinds that write a target have in common, whatever they read."""

from abc import ABC
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config, TaskName
from foveal.core.progress import Watch, every_batch
from foveal.data.audio.speech import SpeechInputs
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import gather
from foveal.data.core.split_data import Part
from foveal.data.images.captioning import CaptionInputs
from foveal.data.text.special_tokens import Marks
from foveal.data.text.text_pairs import PairInputs
from foveal.metrics.recognition import cer, exact, wer
from foveal.metrics.score import Score
from foveal.metrics.translation import bleu, chrf
from foveal.models.encoder import Encoded
from foveal.objectives.hard_attention import DrawnSequenceTask
from foveal.objectives.preview import Shown
from foveal.objectives.sequence_to_sequence import SequenceTask
from foveal.tasks.base import Chosen, Judged
from foveal.tasks.examples import ExampleKind
from foveal.tasks.vqa.answer_formats import ReplyInputs

PREVIEWED = 3
BEAM, ALPHA = 5, 1.0
"""How targets are written to be scored."""
Inputs = PairInputs | SpeechInputs | CaptionInputs | ReplyInputs
Metric = Callable[[list[str], list[str]], Score]
"""References and outputs to a score."""
METRICS: dict[TaskName, tuple[Metric, ...]] = {
    "translate": (bleu, chrf),
    "caption": (chrf, bleu, exact),
    "narrate": (chrf, bleu, exact),
    "reply": (exact, chrf),
    "transduce": (exact, wer, cer),
    "transcribe": (exact, wer, cer),
}
"""By the first of them the worst examples are found: BLEU says little of a caption of few words."""


class WritingKind(ExampleKind, ABC):
    """An encoder, and a generator that reads its memory."""

    def task(
        self, config: Config, model: Encoded, inputs: Inputs, shown: Part[Any] | None = None
    ) -> SequenceTask:
        previews = None
        if shown is not None:
            rows = np.arange(min(PREVIEWED, len(shown)))
            batch = self.gathered(shown.examples, rows)
            previews = Shown(batch, [self.title(shown.sources[row]) for row in rows], inputs.target.decode)
        marks = Marks(inputs.target.size)
        drawn = "attentive" in config.model.mixers and config.model.attentive.look == "hard"
        make = DrawnSequenceTask if drawn else SequenceTask
        return make(model, marks, inputs.room, config.task.smoothing, previews)

    def title(self, source: str) -> str:
        """What a preview calls it: a file without its folder, which is another one where a run is resumed."""
        name, colon, question = source.partition(": ")
        return f"{Path(name).name}{colon}{question}"

    def judge(
        self, config: Config, model: Encoded, inputs: Inputs, data: Part[Any], chosen: Chosen, watch: Watch
    ) -> Judged:
        """What a beam of 5 writes, by the metrics of the task."""
        outputs, targets = self.found(config, model, inputs, data.examples, watch), data.answers
        if inputs.target.kind == "word":  # spaces between words are all alike to it
            targets = [" ".join(text.split()) for text in targets]
        scores = [metric(targets, outputs) for metric in METRICS[config.task.name]]
        return Judged(data.sources, targets, outputs, data.lengths, scores)

    def found(
        self, config: Config, model: Encoded, inputs: Inputs, examples: Examples, watch: Watch
    ) -> list[str]:
        work = self.task(config, model, inputs)
        # Hypotheses grow by one token at a time: even a beam of them needs less memory than training.
        order = self.once(config, examples)
        outputs = [""] * len(examples)
        for batch in every_batch(order, watch):
            written = work.write(batch, BEAM, alpha=ALPHA)
            for row, hypotheses in zip(batch.rows.tolist(), written, strict=True):
                outputs[row] = inputs.target.decode(work.spell(hypotheses[0])).strip()
        return outputs

    def gathered(self, examples: Any, rows: NDArray[np.int64]) -> ExampleBatch:
        """The examples `rows` (B,) as they are seen when they are not trained on."""
        return gather(examples, rows)
