"""The table of tasks: what each reads, trains and scores is a file of this package."""

from typing import Any

from foveal.config import Config, TaskName
from foveal.store.run import Run
from foveal.tasks import language_model, masked_lm
from foveal.tasks.audio import AudioClassificationTask, SpeechRecognitionTask
from foveal.tasks.base import Task
from foveal.tasks.captioning import ImageCaptioningTask
from foveal.tasks.draw.task import ImageGenerationTask
from foveal.tasks.glimpses.task import GlimpsesTask
from foveal.tasks.image_classification import ImageClassificationTask
from foveal.tasks.navigation.task import NavigationTask
from foveal.tasks.series import SeriesClassificationTask, SeriesTaggingTask
from foveal.tasks.tagging import TextTaggingTask
from foveal.tasks.text_classification import TextClassificationTask
from foveal.tasks.translation import TextToTextTask
from foveal.tasks.video import FrameTaggingTask, VideoCaptioningTask, VideoClassificationTask
from foveal.tasks.vqa.task import VQAGenerateTask, VQAMultipleChoiceTask, VQATask

TASKS: dict[TaskName, Task] = {
    "language-model": language_model,
    "translation": TextToTextTask(),
    "transduction": TextToTextTask(),
    "speech-recognition": SpeechRecognitionTask(),
    "audio-classification": AudioClassificationTask(),
    "text-classification": TextClassificationTask(),
    "tagging": TextTaggingTask(),
    "masked-lm": masked_lm,
    "series-classification": SeriesClassificationTask(),
    "series-tagging": SeriesTaggingTask(),
    "image-classification": ImageClassificationTask(),
    "glimpses": GlimpsesTask(),
    "image-generation": ImageGenerationTask(),
    "captioning": ImageCaptioningTask(),
    "video-classification": VideoClassificationTask(),
    "frame-tagging": FrameTaggingTask(),
    "video-captioning": VideoCaptioningTask(),
    "vqa": VQATask(),
    "vqa-generate": VQAGenerateTask(),
    "vqa-multiple-choice": VQAMultipleChoiceTask(),
    "navigation": NavigationTask(),
}


def task_of(config: Config) -> Task:
    return TASKS[config.task.name]


def load_processor(run: Run) -> Any:
    """The processors of a run's inputs."""
    return task_of(run.config).load_processor(run.processor_folder)
