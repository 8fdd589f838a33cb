"""The pairs of sources and targets with which tests read data."""

from foveal.data.audio.audio_source import AudioSource
from foveal.data.images.image_source import ImageSource
from foveal.data.pairs.labels import LabelEachTarget, LabelTarget
from foveal.data.pairs.pair import PairFormat
from foveal.data.series.series_source import SeriesSource
from foveal.data.text.text_source import PairedTextSource, TextSource
from foveal.data.text.text_target import TextTarget
from foveal.data.text.words_source import WordsSource
from foveal.data.video.clip_source import ClipSource
from foveal.tasks.tagging import TagTarget
from foveal.tasks.vqa.answer_targets import AnswerTarget, ChoiceTarget, WrittenAnswerTarget
from foveal.tasks.vqa.image_and_text_source import ImageAndTextSource

TEXT_LABEL = PairFormat(TextSource(), LabelTarget())
TEXT_PAIRS = PairFormat(PairedTextSource(), TextTarget("target"))
TAGGED_WORDS = PairFormat(WordsSource(), TagTarget())
AUDIO_LABEL = PairFormat(AudioSource(), LabelTarget())
AUDIO_LABELS = PairFormat(AudioSource(), LabelEachTarget())
SPEECH = PairFormat(AudioSource(), TextTarget())
SERIES_LABEL = PairFormat(SeriesSource(), LabelTarget())
SERIES_LABELS = PairFormat(SeriesSource(), LabelEachTarget())
SERIES_TEXT = PairFormat(SeriesSource(), TextTarget())
IMAGE_LABEL = PairFormat(ImageSource(), LabelTarget())
IMAGE_TEXT = PairFormat(ImageSource(), TextTarget())
CLIP_LABEL = PairFormat(ClipSource(), LabelTarget())
CLIP_LABELS = PairFormat(ClipSource(), LabelEachTarget())
CLIP_TEXT = PairFormat(ClipSource(), TextTarget())
ANSWERS = PairFormat(ImageAndTextSource(), AnswerTarget())
WRITTEN_ANSWERS = PairFormat(ImageAndTextSource(), WrittenAnswerTarget())
CHOICES = PairFormat(ImageAndTextSource(choices=True), ChoiceTarget())
