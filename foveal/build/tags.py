"""A tag for each word of a sentence."""

from collections.abc import Callable
from typing import Any

from foveal.build.examples import ExampleKind, usual_vocabulary
from foveal.build.kind import Described, Judged
from foveal.build.labels import some
from foveal.config import Config
from foveal.data import tagged
from foveal.data.buckets import HeldOutExamples
from foveal.data.examples import Examples
from foveal.data.marks import Marks
from foveal.data.prepared import Prepared
from foveal.data.tagged import Tagged, TagInputs
from foveal.heads.tag import Tagger
from foveal.models.encoder import Encoded, text_encoder
from foveal.scores.tags import are_entity_tags, entity_f1, tag_accuracy
from foveal.tasks.tag import TagTask


class TagKind(ExampleKind):
    def __init__(self) -> None:
        super().__init__(tagged)

    def model(self, config: Config, inputs: TagInputs) -> Encoded:
        return self._of_sizes(config, inputs.source.size, len(inputs.tags))

    def outline(self, config: Config) -> Encoded:
        return self._of_sizes(config, usual_vocabulary(config), 17)

    def _of_sizes(self, config: Config, tokens: int, tags: int) -> Encoded:
        encoder = text_encoder(config.model.encoder, Marks(tokens).vocabulary, config.data.longest)
        return Encoded(encoder, Tagger(encoder.width, tags, config.model.dropout))

    def task(self, config: Config, model: Encoded, inputs: TagInputs, shown: Tagged | None = None) -> TagTask:
        return TagTask(model, inputs.tags, config.task.smoothing)

    def describe(self, config: Config, data: Prepared[TagInputs, Tagged]) -> Described:
        source, tags = data.inputs.source, data.inputs.tags
        told = f"tag: {some(tags)} for each word, from {source.size:,} {source.kind} tokens"
        return Described("tagged sentences", told, len(tags), "words")

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['words']:,} words"

    def judge(
        self, config: Config, model: Encoded, inputs: TagInputs, data: Tagged, poll: Callable[[], None]
    ) -> Judged:
        """The likeliest tags: accuracy over words, and F1 over entities where the tags mark some."""
        outputs = [row.split() for row in self.found(config, model, inputs, data.examples, poll)]
        scores = [tag_accuracy(data.tags, outputs)]
        if are_entity_tags(inputs.tags):
            scores.append(entity_f1(data.tags, outputs))
        words, tags, found = ([" ".join(row) for row in rows] for rows in (data.words, data.tags, outputs))
        return Judged(words, tags, found, [len(row) for row in data.words], scores)

    def found(
        self, config: Config, model: Encoded, inputs: TagInputs, examples: Examples, poll: Callable[[], None]
    ) -> list[str]:
        work, order = self.task(config, model, inputs), HeldOutExamples(examples, config.data.batch_tokens)
        outputs = [""] * len(examples)
        for index in range(order.per_epoch):
            poll()
            batch = order.batch(0, index)
            sizes = batch.lengths["places"].tolist()
            rows = zip(batch.rows.tolist(), work.predict(batch).tolist(), sizes, strict=True)
            for row, numbers, words in rows:
                outputs[row] = " ".join(inputs.tags[number] for number in numbers[:words])
        return outputs
