"""The table of tasks: what each reads, trains and scores is a file of this package."""

from typing import Any

from foveal.build import language, masked
from foveal.build.ask import AnswerKind, ChooseKind, ReplyKind
from foveal.build.captions import CaptionKind
from foveal.build.draw import DrawKind
from foveal.build.frames import ClipsKind, FramesKind, NarrateKind
from foveal.build.glimpse import GlimpseKind
from foveal.build.images import ImageKind
from foveal.build.kind import Kind
from foveal.build.labels import LabelKind
from foveal.build.navigate import NavigateKind
from foveal.build.pairs import PairKind
from foveal.build.series import SeriesKind, StepsKind
from foveal.build.speech import SoundKind, SpeechKind
from foveal.build.tags import TagKind
from foveal.config import Config, TaskName
from foveal.training.run import Run

KINDS: dict[TaskName, Kind] = {
    "language": language,
    "translate": PairKind(),
    "transduce": PairKind(),
    "transcribe": SpeechKind(),
    "sounds": SoundKind(),
    "classify": LabelKind(),
    "tag": TagKind(),
    "mask": masked,
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
