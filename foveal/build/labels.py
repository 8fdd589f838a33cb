"""One label for each text."""

from collections.abc import Callable

from foveal.build.examples import ExampleKind, usual_vocabulary
from foveal.build.kind import Described, Judged
from foveal.config import Config
from foveal.data import labelled
from foveal.data.buckets import HeldOutExamples
from foveal.data.examples import Examples
from foveal.data.labelled import LabelInputs, Labelled
from foveal.data.marks import Marks
from foveal.data.prepared import Prepared
from foveal.heads.classify import Classifier
from foveal.models.encoder import Encoded, text_encoder
from foveal.scores.labels import accuracy, macro_f1
from foveal.tasks.classify import ClassifyTask


class LabelKind(ExampleKind):
    def __init__(self) -> None:
        super().__init__(labelled)

    def model(self, config: Config, inputs: LabelInputs) -> Encoded:
        return self._of_sizes(config, inputs.source.size, len(inputs.labels))

    def outline(self, config: Config) -> Encoded:
        return self._of_sizes(config, usual_vocabulary(config), 2)

    def _of_sizes(self, config: Config, tokens: int, labels: int) -> Encoded:
        encoder = text_encoder(config.model.encoder, Marks(tokens).vocabulary, config.data.longest)
        return Encoded(encoder, Classifier(encoder.width, labels, config.model.pooling, config.model.dropout))

    def task(
        self, config: Config, model: Encoded, inputs: LabelInputs, shown: Labelled | None = None
    ) -> ClassifyTask:
        return ClassifyTask(model, inputs.labels, config.task.smoothing)

    def describe(self, config: Config, data: Prepared[LabelInputs, Labelled]) -> Described:
        source, labels = data.inputs.source, data.inputs.labels
        told = f"classify: {some(labels)} from {source.size:,} {source.kind} tokens"
        return Described("labelled texts", told, len(labels), "tokens")

    def judge(
        self, config: Config, model: Encoded, inputs: LabelInputs, data: Labelled, poll: Callable[[], None]
    ) -> Judged:
        """The likeliest label: accuracy and macro F1."""
        outputs = self.found(config, model, inputs, data.examples, poll)
        scores = [accuracy(data.labels, outputs), macro_f1(data.labels, outputs)]
        return Judged(
            data.sources, data.labels, outputs, [len(text.split()) for text in data.sources], scores
        )

    def found(
        self,
        config: Config,
        model: Encoded,
        inputs: LabelInputs,
        examples: Examples,
        poll: Callable[[], None],
    ) -> list[str]:
        work, order = self.task(config, model, inputs), HeldOutExamples(examples, config.data.batch_tokens)
        outputs = [""] * len(examples)
        for index in range(order.per_epoch):
            poll()
            batch = order.batch(0, index)
            for row, label in zip(batch.rows.tolist(), work.predict(batch).argmax(1).tolist(), strict=True):
                outputs[row] = inputs.labels[label]
        return outputs


def some(names: tuple[str, ...]) -> str:
    """How many, and the first of them."""
    return f"{len(names):,} ({', '.join(names[:6])}{' ...' if len(names) > 6 else ''})"
