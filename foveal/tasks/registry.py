"""The table of tasks: what each reads, trains and scores is a file of this package."""

from typing import Any

from foveal.config import Config, TaskName
from foveal.store.run import Run
from foveal.tasks import language_model, masked_lm
from foveal.tasks.audio import SoundKind, SpeechKind
from foveal.tasks.base import Kind
from foveal.tasks.captioning import CaptionKind
from foveal.tasks.draw.task import DrawKind
from foveal.tasks.glimpses.task import GlimpseKind
from foveal.tasks.image_classification import ImageKind
from foveal.tasks.navigation.task import NavigateKind
from foveal.tasks.series import SeriesKind, StepsKind
from foveal.tasks.tagging import TagKind
from foveal.tasks.text_classification import LabelKind
from foveal.tasks.translation import PairKind
from foveal.tasks.video import ClipsKind, FramesKind, NarrateKind
from foveal.tasks.vqa.task import AnswerKind, ChooseKind, ReplyKind

KINDS: dict[TaskName, Kind] = {
    "language": language_model,
    "translate": PairKind(),
    "transduce": PairKind(),
    "transcribe": SpeechKind(),
    "sounds": SoundKind(),
    "classify": LabelKind(),
    "tag": TagKind(),
    "mask": masked_lm,
    "series": SeriesKind(),
    "steps": StepsKind(),
    "images": ImageKind(),
    "glimpse": GlimpseKind(),
    "draw": DrawKind(),
    "caption": CaptionKind(),
    "clips": ClipsKind(),
    "frames": FramesKind(),
    "narrate": NarrateKind(),
    "answer": AnswerKind(),
    "reply": ReplyKind(),
    "choose": ChooseKind(),
    "navigate": NavigateKind(),
}


def kind_of(config: Config) -> Kind:
    return KINDS[config.task.name]


def open_inputs(run: Run) -> Any:
    """The processors of a run's inputs."""
    return kind_of(run.config).open_inputs(run.inputs)
