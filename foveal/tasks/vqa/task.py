"""Questions about images: the answer is a known one, or written, or one of the choices that a row brings."""

from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.log import Say
from foveal.core.progress import Watch, every_batch
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.prepared_data import NOTHING, Prepared, Taken
from foveal.data.core.split_data import Part
from foveal.data.images.image_batches import HeldOutPictures, PictureOrder
from foveal.data.text.special_tokens import Marks
from foveal.encoders.joint import JointEncoder
from foveal.metrics.labels import accuracy
from foveal.models.decoder import decoder
from foveal.models.encoder import text_encoder
from foveal.models.image_networks import grid_of
from foveal.tasks.base import Chosen, Described, Given, Judged
from foveal.tasks.examples import ExampleKind, usual_vocabulary
from foveal.tasks.image_source import picture_encoder
from foveal.tasks.labeling import WholeKind, some
from foveal.tasks.text_target import WritingKind
from foveal.tasks.vqa.answer_formats import (
    UNSEEN,
    AnswerForm,
    AnswerInputs,
    ChooseForm,
    ReplyForm,
    ReplyInputs,
)
from foveal.tasks.vqa.model import Chooser, Joined, joint_encoder
from foveal.tasks.vqa.multiple_choice_objective import ChooseTask
from foveal.tasks.vqa.question_batches import AskOrder, shown
from foveal.tasks.vqa.vqa_examples import AskExamples, AskForm, AskInputs


def reader(config: Config, inputs: AskInputs | None = None) -> JointEncoder:
    """What reads an image and a question; usual ones, without a history, if no inputs are given."""
    image, data = picture_encoder(config), config.data
    rows, columns = grid_of(config.model.encoder.network, image, data.image.size)
    size, history = (
        (usual_vocabulary(config), False) if inputs is None else (inputs.text.size, inputs.history)
    )
    return joint_encoder(config.model, image, rows * columns, Marks(size).vocabulary, data.longest, history)


class AskKind(ExampleKind, ABC):
    """Batches are of images, each with all questions about it."""

    form: AskForm

    def training_order(self, config: Config, data: Part[AskExamples]) -> AskOrder:
        pictures, image, seed = data.examples.pictures, config.data.image, config.training.seed
        return AskOrder(data.examples, PictureOrder(pictures, image.batch, config.data.augment, seed))

    def once(self, config: Config, examples: AskExamples) -> AskOrder:
        return AskOrder(examples, HeldOutPictures(examples.pictures, config.data.image))

    def described(self, config: Config, inputs: AskInputs, told: str, outcomes: int, unit: str) -> Described:
        size = config.data.image.size
        read = f"{size} x {size} pixels and {inputs.text.size:,} {inputs.text.kind} tokens"
        before = ", with what was said before" if inputs.history else ""
        return Described(
            "questions about images", f"{config.task.name}: {told} from {read}{before}", outcomes, unit
        )


class AnswerKind(AskKind, WholeKind):
    usual = 10

    def __init__(self) -> None:
        super().__init__(AnswerForm())

    def encoder(self, config: Config, inputs: AskInputs | None = None) -> JointEncoder:
        return reader(config, inputs)

    def of_classes(self, config: Config, encoder: JointEncoder, classes: int) -> Joined:
        return Joined(encoder, self.head(config, encoder, classes))

    def prepare(
        self, config: Config, given: Given, say: Say, inputs: Any = None, taken: Taken = NOTHING
    ) -> Prepared[Any, Any]:
        prepared = super().prepare(config, given, say, inputs, taken)
        held_out = ("valid", prepared.valid, given.valid), ("test", prepared.test, given.test)
        for name, part, own in held_out:
            if part is not None:
                _say_unseen(own or name, part, prepared.inputs, say, own is not None)
        return prepared

    def prepare_held_out(
        self, config: Config, data: str, inputs: AnswerInputs, say: Say
    ) -> tuple[Part[AskExamples], dict[str, Any]]:
        found, facts = super().prepare_held_out(config, data, inputs, say)
        _say_unseen(data, found, inputs, say, True)
        return found, facts

    def describe(self, config: Config, data: Prepared[AnswerInputs, Part[AskExamples]]) -> Described:
        labels = data.inputs.labels
        return self.described(config, data.inputs, some(labels), len(labels), "questions")


def _say_unseen(name: str, part: Part[AskExamples], inputs: AnswerInputs, say: Say, given: bool) -> None:
    """They can't be chosen. UserError if all of what was given are such."""
    unseen = int((np.asarray(part.examples.columns["label"]) == UNSEEN).sum())
    if given and 0 < unseen == len(part):
        raise UserError(
            f"{name}: no answer is one of training ({some(inputs.labels)}), the first is {part.answers[0]}: "
            "write them alike"
        )
    if unseen:
        say(f"{name}: {unseen:,} of {len(part):,} answers are not among those of training: counted as wrong")


class ReplyKind(AskKind, WritingKind):
    def __init__(self) -> None:
        super().__init__(ReplyForm())

    def model(self, config: Config, inputs: ReplyInputs) -> Joined:
        return self._of_target(config, reader(config, inputs), inputs.target.size)

    def outline(self, config: Config) -> Joined:
        return self._of_target(config, reader(config), usual_vocabulary(config))

    def _of_target(self, config: Config, encoder: JointEncoder, target: int) -> Joined:
        head = decoder(config.model, Marks(target).vocabulary, config.data.longest, encoder.width)
        return Joined(encoder, head)

    def gathered(self, examples: AskExamples, rows: NDArray[np.int64]) -> ExampleBatch:
        return shown(examples, rows)

    def describe(self, config: Config, data: Prepared[ReplyInputs, Part[AskExamples]]) -> Described:
        target = data.inputs.target
        told = f"{target.size:,} {target.kind} tokens"
        return self.described(config, data.inputs, told, Marks(target.size).vocabulary, "target tokens")


class ChooseKind(AskKind, WholeKind):
    def __init__(self) -> None:
        super().__init__(ChooseForm())

    def encoder(self, config: Config, inputs: AskInputs | None = None) -> JointEncoder:
        return reader(config, inputs)

    def model(self, config: Config, inputs: AskInputs) -> Chooser:
        return self._of_size(config, reader(config, inputs), inputs.text.size)

    def outline(self, config: Config) -> Chooser:
        return self._of_size(config, reader(config), usual_vocabulary(config))

    def _of_size(self, config: Config, encoder: JointEncoder, size: int) -> Chooser:
        question, longest = config.model.question, config.data.longest
        choices = text_encoder(question, Marks(size).vocabulary, longest, "model.question")
        return Chooser(encoder, choices, self.head(config, encoder, choices.width))

    def task(self, config: Config, model: Any, inputs: AskInputs, shown: Any = None) -> ChooseTask:
        return ChooseTask(model)

    def choices(
        self,
        config: Config,
        model: Any,
        inputs: AskInputs,
        examples: Any,
        watch: Watch,
    ) -> list[list[str]]:
        work, order = self.task(config, model, inputs), self.once(config, examples)
        outputs: list[list[str]] = [[]] * len(examples)
        for batch in every_batch(order, watch):
            for row, (number,) in zip(batch.rows.tolist(), self.chosen(work, batch), strict=True):
                outputs[row] = [examples.choice(row, number)]
        return outputs

    def judge(
        self,
        config: Config,
        model: Chooser,
        inputs: AskInputs,
        data: Part[AskExamples],
        chosen: Chosen,
        watch: Watch,
    ) -> Judged:
        """The likeliest choice: accuracy, since the rows have no classes in common."""
        choice = data.examples.choice
        outputs = [choice(row, number) for row in range(len(data)) for number in chosen[row]]
        scores = [accuracy(data.answers, outputs)]
        return Judged(data.sources, data.answers, outputs, data.lengths, scores)

    def describe(self, config: Config, data: Prepared[AskInputs, Part[AskExamples]]) -> Described:
        lengths = data.train.examples.lengths("choices")
        return self.described(
            config, data.inputs, "one of each row's choices", round(np.mean(lengths)), "questions"
        )
