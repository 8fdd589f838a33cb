"""What the kinds that learn from examples (pairs, labelled texts and series) have in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from torch import nn

from foveal.config import Config
from foveal.core.log import Say
from foveal.core.progress import Watch
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import Buckets, HeldOutExamples
from foveal.data.core.prepared_data import NOTHING, Prepared, Taken
from foveal.data.prepare_examples import Form
from foveal.data.text.special_tokens import Marks
from foveal.data.text.tokenizers import Tokenizer
from foveal.encoders.text import TextEncoder
from foveal.models.encoder import text_encoder
from foveal.tasks.base import Answers, Chosen, Described, Given, Judged
from foveal.training.protocols import Batches, Task


def usual_vocabulary(config: Config) -> int:
    """How many tokens such a tokenizer has on usual texts."""
    return {"character": 100, "byte": 256}.get(config.data.tokenizer, config.data.vocabulary)


def reader_of(config: Config, source: Tokenizer | None) -> TextEncoder:
    """The encoder of a tokenizer's texts; of usual ones, if none is given."""
    size = usual_vocabulary(config) if source is None else source.size
    return text_encoder(config.model.encoder, Marks(size).vocabulary, config.data.longest)


class ExampleKind(ABC):
    """A `Kind` whose data are examples of one form, batched by length."""

    def __init__(self, form: Form):
        self.form = form

    def prepare(
        self,
        config: Config,
        given: Given,
        say: Say,
        inputs: Any = None,
        taken: Taken = NOTHING,
    ) -> Prepared[Any, Any]:
        return prepare_examples.prepare(
            self.form, given.data, given.valid, given.test, config.data, say, inputs, taken
        )

    def prepare_held_out(
        self, config: Config, data: str, inputs: Any, say: Say
    ) -> tuple[Any, dict[str, Any]]:
        return prepare_examples.prepare_held_out(self.form, data, config.data, inputs, say)

    def open_inputs(self, folder: Path) -> Any:
        return self.form.open_inputs(folder)

    def input_files(self, inputs: Any) -> dict[str, bytes]:
        files: dict[str, bytes] = inputs.files()
        return files

    def training_order(self, config: Config, data: Any) -> Batches:
        return Buckets(data.examples, config.data.batch_tokens, config.training.seed)

    def held_out_order(self, config: Config, data: Any) -> Batches:
        return self.once(config, data.examples)

    def once(self, config: Config, examples: Any) -> Batches:
        """Every example in one batch or another."""
        return HeldOutExamples(examples, config.data.batch_tokens)

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,}"

    @abstractmethod
    def model(self, config: Config, inputs: Any) -> nn.Module: ...

    @abstractmethod
    def outline(self, config: Config) -> nn.Module: ...

    @abstractmethod
    def task(self, config: Config, model: Any, inputs: Any, shown: Any = None) -> Task: ...

    @abstractmethod
    def describe(self, config: Config, data: Prepared[Any, Any]) -> Described: ...

    def answer(self, config: Config, model: Any, inputs: Any, data: str, say: Say, watch: Watch) -> Answers:
        asked = prepare_examples.read_questions(self.form, data, inputs, config.data, say)
        found, sure = self.found_surely(config, model, inputs, asked.examples, watch)
        texts = (row.fields["source"] for row in asked.rows)
        sources = [text if isinstance(text, str) else " ".join(text) for text in texts]
        return Answers(sources, found, sure, [row.place for row in asked.rows], asked.aside)

    def found_surely(
        self, config: Config, model: Any, inputs: Any, examples: Examples, watch: Watch
    ) -> tuple[list[str], list[float] | None]:
        """The same as `found`, with the probability of each, if the model has one."""
        return self.found(config, model, inputs, examples, watch), None

    @abstractmethod
    def found(self, config: Config, model: Any, inputs: Any, examples: Examples, watch: Watch) -> list[str]:
        """What the model makes of each source, in their order, as text."""

    @abstractmethod
    def judge(
        self, config: Config, model: Any, inputs: Any, data: Any, chosen: Chosen, watch: Watch
    ) -> Judged | None: ...
