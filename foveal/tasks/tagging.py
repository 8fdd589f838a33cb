"""A tag for each word of a sentence."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from foveal.config import DataConfig
from foveal.data.core.classes import class_names_to_json, load_class_names
from foveal.data.guess_columns import guess_tagged_columns
from foveal.data.open import OpenedData
from foveal.data.pairs.labels import LabelEachTarget, LabelProcessor
from foveal.data.pairs.pair import PairFormat
from foveal.data.text.word_vocabulary import FORMS, KNOWN_CHARACTERS
from foveal.data.text.words_source import WordFormsSource, WordsSource
from foveal.metrics.frequent_tags import FrequentTags
from foveal.metrics.tags import tag_accuracy
from foveal.models.encoder_registry import TokenSizes, WordSizes, encoder_spec, make_encoder
from foveal.tasks.baseline import Baseline
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.examples import token_sizes, tokens_in_words
from foveal.tasks.shapes.labeling import TaggingTask

WORDS_COLUMN = "tokens"
TAGS_FILE = "tags.json"
DEFAULT_FORMS, DEFAULT_CHARACTERS = 10_000, 100
"""Numbers of forms and characters in `example_model`."""


class TagsDataConfig(DataConfig):
    """The section `data` of tagging."""

    tags: str = "upos"
    """Column of the tags in CoNLL-U; other tables have their tags last, or under `tags`."""


class TagTarget(LabelEachTarget):
    """A tag for each word."""

    is_stored = True
    settings = ("data.tags",)

    def column(self, config: DataConfig) -> str:
        assert isinstance(config, TagsDataConfig)
        return config.tags

    def files(self, processor: LabelProcessor, source_processor: Any) -> dict[str, bytes]:
        return {TAGS_FILE: class_names_to_json(processor.labels)}

    def load(self, folder: Path, source_processor: Any) -> LabelProcessor:
        return LabelProcessor(load_class_names(folder / TAGS_FILE))


class TextTaggingTask(TaggingTask):
    name = "tagging"
    purpose = "Tag each word of a sentence."
    preset = "word-tagging"
    text_preset = "tagging"
    DataSettings = TagsDataConfig
    source = WordsSource()
    target = TagTarget()
    source_kind = "text"
    encoders = ("text", "words", "elmo")
    encoder_source = "text"
    columns = ("tags",)
    datasets = ("associative-recall", "delayed-copy")
    loss_unit = "word"
    examples_in_words = "tagged sentences"
    speed_unit = "words"
    place = "word"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 23 for named tags, 14 for a table with tokens and tags, 1 for CoNLL files."""
        if data.kind in ("table", "text") and "tags" in named:
            return Fit(23, f"data.tags={named['tags']} names tags")
        if data.kind == "table" and {"tokens", "tags"} <= data.columns:
            return Fit(14, "there are the columns tokens and tags")
        return Fit(1, data.evidence.reason) if data.kind == "conll" else NO_FIT

    @classmethod
    def columns_hint(cls, data: OpenedData) -> str:
        """Name the settings for two columns of lists that are equally long in each row."""
        words, tags = guess_tagged_columns(data.train)
        if not words:
            return ""
        rename = "" if words == WORDS_COLUMN else f", after renaming the column '{words}' to {WORDS_COLUMN}"
        return f"is it tagged words? {quote(f'data.tags={tags}')}{rename}"

    def check(self) -> None:
        super().check()
        if self.reads_forms and self.config.model.encoder.embedding_width == -1:
            raise ValueError(
                "model.encoder.embedding_width=-1: the vectors of a word's forms are added, so they are not "
                "one-hot; set a width, such as 128"
            )

    @property
    def reads_forms(self) -> bool:
        """Return whether the encoder reads the forms and characters of words, and not tokens."""
        return "words" in encoder_spec(self.config.model.encoder).reads

    @property
    def data_format(self) -> PairFormat:
        return PairFormat(WordFormsSource() if self.reads_forms else self.source, self.target)

    @property
    def source_sizes(self) -> TokenSizes | WordSizes:
        source = None if self.processor is None else self.processor.source
        if not self.reads_forms:
            return token_sizes(self.config, source)
        counts = [1] * DEFAULT_FORMS if source is None else [*source.form_counts.values()]
        characters = KNOWN_CHARACTERS + DEFAULT_CHARACTERS if source is None else source.character_ids
        return WordSizes(FORMS, counts, characters, self.config.data.max_length)

    def encoder(self) -> Any:
        return make_encoder(self.config.model.encoder, self.source_sizes)

    def baseline(self, train: Any, held_out: Any) -> Baseline:
        """Return the score of the most frequent tag of each word."""
        words, held_out_words = ([text.split() for text in data.sources] for data in (train, held_out))
        tags = FrequentTags.fit(words, train.references)
        outputs = [tags.predict(sentence) for sentence in held_out_words]
        result = tag_accuracy([*held_out.references], outputs)
        return Baseline.of("the most frequent tag of each word", result)

    def source_in_words(self) -> str:
        source = self.processor.source
        if not self.reads_forms:
            return tokens_in_words(source)
        return f"{len(source.counts):,} words and {len(source.characters):,} characters"

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['words']:,} words"
