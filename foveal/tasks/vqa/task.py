"""Visual question answering: the answer is from a known set, is generated, or is one of the row's choices."""

from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from foveal.config import EncoderStackConfig
from foveal.config.model import check_feedforward
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_batches import sampled_pixels
from foveal.data.open import DataPaths, OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.encoders.joint import JointEncoder
from foveal.metrics.labels import accuracy
from foveal.metrics.recognition import exact_match
from foveal.metrics.score import MetricResult
from foveal.metrics.translation import chrf
from foveal.models.decoder import decoder
from foveal.models.encoder import text_encoder
from foveal.models.image_networks import output_grid
from foveal.models.stack_settings import VECTOR_ENCODER, keys_below
from foveal.tasks.base import TaskSettings
from foveal.tasks.baseline import SimpleAnswers
from foveal.tasks.components import ModelComponent, encoder_components, stack_component
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.results import AnsweredRow, TaskSummary
from foveal.tasks.shapes.examples import ExampleTask, default_vocab_size, tokens_in_words
from foveal.tasks.shapes.images import IMAGE_ENCODERS, check_single_view, image_encoder_for
from foveal.tasks.shapes.labeling import ClassificationTask, SmoothedSettings, summarize_labels
from foveal.tasks.shapes.text_target import SequenceToSequenceTask
from foveal.tasks.vqa.answer_targets import IGNORE_INDEX, AnswerTarget, ChoiceTarget, WrittenAnswerTarget
from foveal.tasks.vqa.data_settings import VQADataConfig
from foveal.tasks.vqa.datasets import EASY_VQA, SHAPE_DIALOG
from foveal.tasks.vqa.frequent_answers import NAME as FREQUENT_ANSWER
from foveal.tasks.vqa.frequent_answers import FrequentAnswers
from foveal.tasks.vqa.image_and_text_source import ImageAndTextSource
from foveal.tasks.vqa.model import MultipleChoiceModel, VQAModel, joint_encoder
from foveal.tasks.vqa.multiple_choice_objective import MultipleChoiceObjective
from foveal.tasks.vqa.predict import answer_questions
from foveal.tasks.vqa.vqa_examples import VQAExamples


class VQAStackSettings(TaskSettings):
    question: EncoderStackConfig = EncoderStackConfig()
    """The stack that reads the question about an image; another one reads the dialog before."""
    fusion: EncoderStackConfig = EncoderStackConfig()
    """The stack that sees the vectors of image, question and dialog side by side."""


class VQASettings(VQAStackSettings, SmoothedSettings):
    """The settings of tasks whose answers have known labels or tokens."""


class BaseVQATask(ExampleTask, ABC):
    """Base class of the three tasks. A batch has images, each with all its questions."""

    Settings: ClassVar[type[VQAStackSettings]] = VQAStackSettings
    DataSettings = VQADataConfig
    settings: VQAStackSettings

    source: ClassVar[ImageAndTextSource] = ImageAndTextSource()
    source_kind = "image-and-text"
    encoders = IMAGE_ENCODERS
    examples_in_words = "questions about images"
    speed_unit = "questions"

    @classmethod
    def fixed_settings(cls) -> tuple[str, ...]:
        return *super().fixed_settings(), "task.question", "task.fusion"

    def settings_read(self) -> set[str]:
        fusion = keys_below("task.fusion", VECTOR_ENCODER)
        return super().settings_read() - {"task.fusion"} | fusion

    def check(self) -> None:
        super().check()
        check_feedforward("task.question", self.settings.question)
        check_feedforward("task.fusion", self.settings.fusion)
        check_single_view(self.config, "question")

    def encoder(self) -> JointEncoder:
        """Return the encoder of an image and a question. Without a processor, use default sizes."""
        config, processor = self.config, self.processor
        image = image_encoder_for(config)
        rows, columns = output_grid(config.model.encoder.network, image, config.data.image.size)
        size, history = default_vocab_size(config), False
        if processor is not None:
            size, history = processor.source.text.size, processor.source.history
        vocabulary, max_length = SpecialTokens(size).vocab_size, config.data.max_length
        settings = self.settings
        return joint_encoder(
            settings.question, settings.fusion, image, rows * columns, vocabulary, max_length, history
        )

    def components(self) -> list[ModelComponent]:
        model, settings = self.config.model, self.settings
        question = stack_component("question", settings.question)
        joint = stack_component("fusion", settings.fusion)
        decoder = [stack_component("decoder", model)] if self.has_decoder else []
        return [*encoder_components(model.encoder), question, joint, *decoder]

    def fit_inputs(self, data: SplitData[VQAExamples]) -> tuple[Tensor, ...]:
        return (sampled_pixels(data.examples.images, self.config.training.seed),)

    def answer(
        self, data: Path, questions: Sequence[str], choices: Sequence[str], top: int
    ) -> list[AnsweredRow]:
        return answer_questions(self, data, questions, choices, top)

    def simple_answers(
        self, train: SplitData[VQAExamples], held_out: SplitData[VQAExamples]
    ) -> SimpleAnswers:
        """Return the most frequent answers to the questions' first words."""
        frequent = FrequentAnswers.fit(self._questions(train.examples), train.references)
        rows, has_choices = held_out.examples, held_out.examples.choice_table is not None
        return {
            FREQUENT_ANSWER: [
                frequent.predict(question, rows.choices(row) if has_choices else ())
                for row, question in enumerate(self._questions(rows))
            ]
        }

    def _questions(self, examples: VQAExamples) -> list[str]:
        """Return the questions, without characters that the tokenizer does not know."""
        tokenizer = self.processor.source.text
        rows = (examples.columns["question"][row] for row in range(len(examples)))
        return [tokenizer.decode(tokens[tokens < tokenizer.size].tolist()) for tokens in rows]

    def source_in_words(self) -> str:
        """Return a description of what the model reads of a question."""
        size, source = self.config.data.image.size, self.processor.source
        history = ", with the history" if source.history else ""
        return f"{size} x {size} pixels and {tokens_in_words(source.text)}{history}"


class VQATask(BaseVQATask, ClassificationTask):
    name = "vqa"
    purpose = "Answer a question about an image by a known answer."
    preset = "vqa"
    Settings = VQASettings
    settings: VQASettings
    target = AnswerTarget()
    columns = ("question", "answer", "history")
    datasets = (EASY_VQA.name, SHAPE_DIALOG.name)
    default_classes = 10
    loss_unit = "question"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 22 for a named question or answer, 3 for images with both columns."""
        return _recognize(data, named, cls.columns, 22, ("question", "answer"), 3)

    def model_for_classes(self, encoder: JointEncoder, classes: int) -> VQAModel:
        return VQAModel(encoder, self.make_head(encoder, classes))

    def prepare(
        self, paths: DataPaths, log: Log, reused: ReusedProcessors = NO_REUSE
    ) -> PreparedData[Any, Any]:
        prepared = super().prepare(paths, log, reused)
        held_out = ("valid", prepared.valid, paths.valid), ("test", prepared.test, paths.test)
        for name, part, path in held_out:
            if part is not None:
                _log_unseen_answers(path or name, part, prepared.processor, log, path is not None)
        return prepared

    def prepare_held_out(self, data: str, log: Log) -> tuple[SplitData[VQAExamples], dict[str, Any]]:
        part, facts = super().prepare_held_out(data, log)
        _log_unseen_answers(data, part, self.processor, log, True)
        return part, facts


class VQAGenerateTask(BaseVQATask, SequenceToSequenceTask):
    name = "vqa-generate"
    purpose = "Write the answer to a question about an image."
    preset = "vqa-generate"
    Settings = VQASettings
    settings: VQASettings
    target = WrittenAnswerTarget()
    columns = ("question", "answer", "history")
    metrics = (exact_match, chrf)
    reads_files = "questions about images"
    no_attention_map = "images with questions"

    def model_for_vocab(self, encoder: JointEncoder, tokens: int) -> VQAModel:
        vocabulary, max_length = SpecialTokens(tokens).vocab_size, self.config.data.max_length
        return VQAModel(encoder, decoder(self.config.model, vocabulary, max_length, encoder.width))

    @property
    def num_outcomes(self) -> int:
        return SpecialTokens(self.processor.target.tokenizer.size).vocab_size

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[VQAExamples]]) -> TaskSummary:
        target = prepared.processor.target.tokenizer
        task = f"{self.name}: {tokens_in_words(target)} from {self.source_in_words()}"
        return TaskSummary(self.examples_in_words, task, self.num_outcomes, "target tokens")


class VQAMultipleChoiceTask(BaseVQATask, ClassificationTask):
    name = "vqa-multiple-choice"
    purpose = "Choose the answer to a question about an image among those of its row."
    preset = "vqa-multiple-choice"
    Settings = VQAStackSettings
    refused_settings: ClassVar[Mapping[str, str]] = {"label_smoothing": "the choices are each row's own"}
    source = ImageAndTextSource(choices=True)
    target = ChoiceTarget()
    target_kind = "choice"
    columns = ("question", "answer", "choices", "history")
    has_classes = False
    takes_heads = False
    suggested_view = ""
    loss_unit = "question"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 21 for named choices, 4 for images with questions, answers and choices."""
        return _recognize(data, named, ("choices",), 21, ("question", "answer", "choices"), 4)

    def new_model(self) -> MultipleChoiceModel:
        return self._model_for_vocab(self.processor.source.text.size)

    def example_model(self) -> MultipleChoiceModel:
        return self._model_for_vocab(default_vocab_size(self.config))

    def _model_for_vocab(self, tokens: int) -> MultipleChoiceModel:
        encoder = self.encoder()
        question, vocabulary = self.settings.question, SpecialTokens(tokens).vocab_size
        choices = text_encoder(question, vocabulary, self.config.data.max_length, "task.question")
        return MultipleChoiceModel(encoder, choices, self.head(encoder, choices.width))

    def objective(self, preview_examples: Any = None) -> MultipleChoiceObjective:
        return MultipleChoiceObjective(self.model)

    def labels_of(self, examples: VQAExamples, row: int) -> Sequence[str]:
        return examples.choices(row)

    def target_names(self, examples: VQAExamples, row: int, batch: ExampleBatch) -> tuple[str, ...]:
        return (examples.choices(row)[int(batch.columns["label"])],)

    def label_scores(self, references: list[str], outputs: list[str]) -> list[MetricResult]:
        """Return the accuracy of the likeliest choice. The rows share no classes."""
        return [accuracy(references, outputs)]

    @property
    def num_outcomes(self) -> None:
        """None: each row has choices of its own."""
        return None

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[VQAExamples]]) -> TaskSummary:
        choices = round(np.mean(prepared.train.examples.lengths("choices")))
        task = f"{self.name}: one of each row's choices from {self.source_in_words()}"
        return TaskSummary(self.examples_in_words, task, choices, self.speed_unit)


def _recognize(
    data: OpenedData,
    named: Mapping[str, object],
    deciding: Sequence[str],
    by_name: int,
    needed: Sequence[str],
    by_columns: int,
) -> Fit:
    """Return the score `by_name` if the user names a deciding column, or `by_columns` for images with the
    needed columns."""
    if data.kind in ("table", "text"):
        settings = ", ".join(f"data.{name}" for name in deciding if name in named)
        return Fit(by_name, f"{settings} names a column") if settings else NO_FIT
    columns = [str(named.get(name, name)) for name in needed]
    if data.kind != "images" or not {*columns} <= data.columns:
        return NO_FIT
    return Fit(by_columns, f"{data.evidence.reason}, with the columns {', '.join(columns)}")


def _log_unseen_answers(
    name: str, split: SplitData[VQAExamples], processor: PairProcessor, log: Log, is_named: bool
) -> None:
    """Log how many answers do not occur in training. A model can't choose such answers.

    Raises: UserError: the user named the data, and none of their answers occurs in training.
    """
    unseen = int((np.asarray(split.examples.columns["label"]) == IGNORE_INDEX).sum())
    if is_named and 0 < unseen == len(split):
        known = summarize_labels(processor.target.labels)
        raise UserError(
            f"{name}: no answer is one of training ({known}), the first is "
            f"{split.references[0]}: spell the answers as in training"
        )
    if unseen:
        log(f"{name}: {unseen:,} of {len(split):,} answers did not occur in training, and count as wrong")
