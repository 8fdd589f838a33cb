"""Questions about images: the answer is a known one, or written, or one of the choices that a row brings."""

from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_batches import ImageEvalBatches, ImageTrainBatches
from foveal.data.text.special_tokens import SpecialTokens
from foveal.encoders.joint import JointEncoder
from foveal.metrics.labels import accuracy
from foveal.models.decoder import decoder
from foveal.models.encoder import text_encoder
from foveal.models.image_networks import output_grid
from foveal.tasks.base import DataPaths, EvaluationResult, PredictedIds, TaskSummary
from foveal.tasks.examples import ExampleTask, default_vocab_size
from foveal.tasks.image_source import image_encoder_for
from foveal.tasks.labeling import ClassificationTask, summarize_labels
from foveal.tasks.text_target import SequenceToSequenceTask
from foveal.tasks.vqa.answer_formats import (
    IGNORE_INDEX,
    VQAClassificationFormat,
    VQAClassificationProcessor,
    VQAGenerationFormat,
    VQAGenerationProcessor,
    VQAMultipleChoiceFormat,
)
from foveal.tasks.vqa.model import MultipleChoiceModel, VQAModel, joint_encoder
from foveal.tasks.vqa.multiple_choice_objective import MultipleChoiceObjective
from foveal.tasks.vqa.question_batches import VQABatches, collate_center_crops
from foveal.tasks.vqa.vqa_examples import VQAExamples, VQAFormat, VQAProcessor


def vqa_encoder(config: Config, processor: VQAProcessor | None = None) -> JointEncoder:
    """What reads an image and a question; usual ones, without a history, if no inputs are given."""
    image, data = image_encoder_for(config), config.data
    rows, columns = output_grid(config.model.encoder.network, image, data.image.size)
    size, history = (
        (default_vocab_size(config), False) if processor is None else (processor.text.size, processor.history)
    )
    return joint_encoder(
        config.model, image, rows * columns, SpecialTokens(size).vocab_size, data.max_length, history
    )


class BaseVQATask(ExampleTask, ABC):
    """Batches are of images, each with all questions about it."""

    form: VQAFormat

    def train_batches(self, config: Config, data: SplitData[VQAExamples]) -> VQABatches:
        pictures, image, seed = data.examples.images, config.data.image, config.training.seed
        return VQABatches(
            data.examples, ImageTrainBatches(pictures, image.batch_size, config.data.augment, seed)
        )

    def example_batches(self, config: Config, examples: VQAExamples) -> VQABatches:
        return VQABatches(examples, ImageEvalBatches(examples.images, config.data.image))

    def summary_of(
        self, config: Config, processor: VQAProcessor, output_description: str, num_outcomes: int, unit: str
    ) -> TaskSummary:
        size = config.data.image.size
        read = f"{size} x {size} pixels and {processor.text.size:,} {processor.text.kind} tokens"
        before = ", with what was said before" if processor.history else ""
        return TaskSummary(
            "questions about images",
            f"{config.task.name}: {output_description} from {read}{before}",
            num_outcomes,
            unit,
        )


class VQATask(BaseVQATask, ClassificationTask):
    default_classes = 10

    def __init__(self) -> None:
        super().__init__(VQAClassificationFormat())

    def encoder(self, config: Config, processor: VQAProcessor | None = None) -> JointEncoder:
        return vqa_encoder(config, processor)

    def model_for_classes(self, config: Config, encoder: JointEncoder, classes: int) -> VQAModel:
        return VQAModel(encoder, self.head(config, encoder, classes))

    def prepare(
        self,
        config: Config,
        data_paths: DataPaths,
        log: Log,
        processor: Any = None,
        reused: ReusedProcessors = NO_REUSE,
    ) -> PreparedData[Any, Any]:
        prepared = super().prepare(config, data_paths, log, processor, reused)
        held_out = ("valid", prepared.valid, data_paths.valid), ("test", prepared.test, data_paths.test)
        for name, part, own in held_out:
            if part is not None:
                _log_unseen_answers(own or name, part, prepared.processor, log, own is not None)
        return prepared

    def prepare_held_out(
        self, config: Config, data: str, processor: VQAClassificationProcessor, log: Log
    ) -> tuple[SplitData[VQAExamples], dict[str, Any]]:
        found, facts = super().prepare_held_out(config, data, processor, log)
        _log_unseen_answers(data, found, processor, log, True)
        return found, facts

    def summarize(
        self, config: Config, data: PreparedData[VQAClassificationProcessor, SplitData[VQAExamples]]
    ) -> TaskSummary:
        labels = data.processor.labels
        return self.summary_of(config, data.processor, summarize_labels(labels), len(labels), "questions")


def _log_unseen_answers(
    name: str,
    part: SplitData[VQAExamples],
    processor: VQAClassificationProcessor,
    log: Log,
    given_by_user: bool,
) -> None:
    """They can't be chosen. UserError if all of what was given are such."""
    unseen = int((np.asarray(part.examples.columns["label"]) == IGNORE_INDEX).sum())
    if given_by_user and 0 < unseen == len(part):
        raise UserError(
            f"{name}: no answer is one of training ({summarize_labels(processor.labels)}), the first is "
            f"{part.references[0]}: write them alike"
        )
    if unseen:
        log(f"{name}: {unseen:,} of {len(part):,} answers are not among those of training: counted as wrong")


class VQAGenerateTask(BaseVQATask, SequenceToSequenceTask):
    def __init__(self) -> None:
        super().__init__(VQAGenerationFormat())

    def model(self, config: Config, processor: VQAGenerationProcessor) -> VQAModel:
        return self._model_for_vocab(config, vqa_encoder(config, processor), processor.target.size)

    def model_of_default_size(self, config: Config) -> VQAModel:
        return self._model_for_vocab(config, vqa_encoder(config), default_vocab_size(config))

    def _model_for_vocab(self, config: Config, encoder: JointEncoder, target: int) -> VQAModel:
        head = decoder(config.model, SpecialTokens(target).vocab_size, config.data.max_length, encoder.width)
        return VQAModel(encoder, head)

    def eval_batch(self, examples: VQAExamples, rows: NDArray[np.int64]) -> ExampleBatch:
        return collate_center_crops(examples, rows)

    def summarize(
        self, config: Config, data: PreparedData[VQAGenerationProcessor, SplitData[VQAExamples]]
    ) -> TaskSummary:
        target = data.processor.target
        told = f"{target.size:,} {target.kind} tokens"
        return self.summary_of(
            config, data.processor, told, SpecialTokens(target.size).vocab_size, "target tokens"
        )


class VQAMultipleChoiceTask(BaseVQATask, ClassificationTask):
    def __init__(self) -> None:
        super().__init__(VQAMultipleChoiceFormat())

    def encoder(self, config: Config, processor: VQAProcessor | None = None) -> JointEncoder:
        return vqa_encoder(config, processor)

    def model(self, config: Config, processor: VQAProcessor) -> MultipleChoiceModel:
        return self._model_for_vocab(config, vqa_encoder(config, processor), processor.text.size)

    def model_of_default_size(self, config: Config) -> MultipleChoiceModel:
        return self._model_for_vocab(config, vqa_encoder(config), default_vocab_size(config))

    def _model_for_vocab(self, config: Config, encoder: JointEncoder, size: int) -> MultipleChoiceModel:
        question, longest = config.model.question, config.data.max_length
        choices = text_encoder(question, SpecialTokens(size).vocab_size, longest, "model.question")
        return MultipleChoiceModel(encoder, choices, self.head(config, encoder, choices.width))

    def objective(
        self, config: Config, model: Any, processor: VQAProcessor, preview_examples: Any = None
    ) -> MultipleChoiceObjective:
        return MultipleChoiceObjective(model)

    def predicted_labels(
        self,
        config: Config,
        model: Any,
        processor: VQAProcessor,
        examples: Any,
        progress: ProgressCallback,
    ) -> list[list[str]]:
        work, order = self.objective(config, model, processor), self.example_batches(config, examples)
        outputs: list[list[str]] = [[]] * len(examples)
        for batch in iterate_batches(order, progress):
            for row, (number,) in zip(batch.rows.tolist(), self.predicted_ids(work, batch), strict=True):
                outputs[row] = [examples.choice(row, number)]
        return outputs

    def score(
        self,
        config: Config,
        model: MultipleChoiceModel,
        processor: VQAProcessor,
        data: SplitData[VQAExamples],
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult:
        """The likeliest choice: accuracy, since the rows have no classes in common."""
        choice = data.examples.choice
        outputs = [choice(row, number) for row in range(len(data)) for number in predicted_ids[row]]
        scores = [accuracy(data.references, outputs)]
        return EvaluationResult(data.sources, data.references, outputs, data.lengths, scores)

    def summarize(
        self, config: Config, data: PreparedData[VQAProcessor, SplitData[VQAExamples]]
    ) -> TaskSummary:
        lengths = data.train.examples.lengths("choices")
        return self.summary_of(
            config, data.processor, "one of each row's choices", round(np.mean(lengths)), "questions"
        )
