"""The encoder of words by their forms and characters."""

from foveal.config import EncoderConfig
from foveal.encoders.words import WordEncoder
from foveal.models.encoder import word_encoder
from foveal.models.encoder_registry import EncoderSpec, WordSizes, register_encoder
from foveal.models.stack_settings import VECTOR_ENCODER
from foveal.plugins.constructor_settings import NoSettings


@register_encoder("words")
class WordsSpec(EncoderSpec[NoSettings]):
    reads = ("words",)
    shared_settings = VECTOR_ENCODER | {
        "embedding_width",
        "character_width",
        "character_filters",
        "word_dropout",
    }
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: WordSizes) -> WordEncoder:
        return word_encoder(config, sizes.forms, sizes.form_counts, sizes.characters, sizes.max_length)
