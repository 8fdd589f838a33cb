"""What kinds that choose among classes have in common: one for the whole source, or one for each place."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import nn

from foveal.config import Config
from foveal.core.progress import Watch, every_batch
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.heads.classification import Classifier
from foveal.heads.tagging import Tagger
from foveal.metrics.labels import accuracy, macro_f1
from foveal.metrics.tags import are_entity_tags, entity_f1, tag_accuracy, tag_macro_f1
from foveal.models.encoder import Encoded
from foveal.objectives.classification import ClassifyTask
from foveal.objectives.tagging import TagTask
from foveal.tasks.base import Chosen, Judged
from foveal.tasks.examples import ExampleKind


class ChoosingKind(ExampleKind, ABC):
    """An encoder, and a head that chooses among the labels of its inputs, whatever is read."""

    usual: ClassVar[int]
    """Classes of an outline."""

    def model(self, config: Config, inputs: Any) -> Encoded:
        return self.of_classes(config, self.encoder(config, inputs), len(inputs.labels))

    def outline(self, config: Config) -> Encoded:
        return self.of_classes(config, self.encoder(config), self.usual)

    def of_classes(self, config: Config, encoder: Any, classes: int) -> Encoded:
        """The model with a head for so many classes."""
        return Encoded(encoder, self.head(config, encoder, classes))

    def choices(
        self, config: Config, model: Any, inputs: Any, examples: Examples, watch: Watch
    ) -> list[list[str]]:
        """The labels of each source, in their order."""
        work, order = self.task(config, model, inputs), self.once(config, examples)
        outputs: list[list[str]] = [[]] * len(examples)
        for batch in every_batch(order, watch):
            for row, numbers in zip(batch.rows.tolist(), self.chosen(work, batch), strict=True):
                outputs[row] = [inputs.labels[number] for number in numbers]
        return outputs

    def found(self, config: Config, model: Any, inputs: Any, examples: Examples, watch: Watch) -> list[str]:
        return [" ".join(labels) for labels in self.choices(config, model, inputs, examples, watch)]

    @abstractmethod
    def encoder(self, config: Config, inputs: Any = None) -> nn.Module:
        """What reads such inputs; usual ones, if none are given."""

    @abstractmethod
    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module: ...

    @abstractmethod
    def chosen(self, work: Any, batch: ExampleBatch) -> list[list[int]]:
        """The numbers of the labels that the task chooses for each row."""


class WholeKind(ChoosingKind, ABC):
    """One label for each source."""

    usual = 2

    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module:
        return Classifier(encoder.width, classes, config.model.pooling, config.model.dropout)

    def task(self, config: Config, model: Encoded, inputs: Any, shown: Any = None) -> ClassifyTask:
        return ClassifyTask(model, inputs.labels, config.task.smoothing)

    def chosen(self, work: Any, batch: ExampleBatch) -> list[list[int]]:
        numbers: list[list[int]] = work.predict(batch).argmax(1, keepdim=True).tolist()
        return numbers

    def judge(
        self, config: Config, model: Any, inputs: Any, data: Any, chosen: Chosen, watch: Watch
    ) -> Judged:
        """The likeliest label: accuracy and macro F1."""
        outputs = [inputs.labels[number] for row in range(len(data)) for number in chosen[row]]
        scores = [accuracy(data.answers, outputs), macro_f1(data.answers, outputs)]
        return Judged(data.sources, data.answers, outputs, data.lengths, scores)


class PlacesKind(ChoosingKind, ABC):
    """A label for each place that is asked for: a word, a step."""

    usual = 17

    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module:
        return Tagger(encoder.width, classes, config.model.dropout)

    def task(self, config: Config, model: Encoded, inputs: Any, shown: Any = None) -> TagTask:
        return TagTask(model, inputs.labels, config.task.smoothing)

    def chosen(self, work: TagTask, batch: ExampleBatch) -> list[list[int]]:
        rows = zip(work.predict(batch).tolist(), batch.lengths["places"].tolist(), strict=True)
        return [numbers[:places] for numbers, places in rows]

    def judge(
        self, config: Config, model: Any, inputs: Any, data: Any, chosen: Chosen, watch: Watch
    ) -> Judged:
        """The likeliest labels: accuracy and macro F1 over places, and F1 over the entities they may mark."""
        outputs = [[inputs.labels[number] for number in chosen[row]] for row in range(len(data))]
        scores = [tag_accuracy(data.answers, outputs), tag_macro_f1(data.answers, outputs)]
        if are_entity_tags(inputs.labels):
            scores.append(entity_f1(data.answers, outputs))
        right, found = ([" ".join(row) for row in rows] for rows in (data.answers, outputs))
        return Judged(data.sources, right, found, data.lengths, scores)


def some(names: tuple[str, ...]) -> str:
    """How many, and the first of them."""
    return f"{len(names):,} ({', '.join(names[:6])}{' ...' if len(names) > 6 else ''})"
