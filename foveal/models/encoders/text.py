"""The encoders of texts of tokens."""

from foveal.config import EncoderConfig
from foveal.encoders.ngrams import NgramEncoder
from foveal.encoders.text import TextEncoder
from foveal.models.encoder import text_encoder
from foveal.models.encoder_registry import EncoderComponent, EncoderSpec, TokenSizes, register_encoder
from foveal.models.stack_settings import TOKEN_ENCODER
from foveal.plugins.constructor_settings import NoSettings


@register_encoder("text")
class TextSpec(EncoderSpec[NoSettings]):
    reads = ("text",)
    shared_settings = TOKEN_ENCODER
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: TokenSizes) -> TextEncoder:
        return text_encoder(config, sizes.vocabulary, sizes.max_length)


@register_encoder("ngrams")
class NgramsSpec(EncoderSpec[NoSettings]):
    reads = ("text",)
    shared_settings = frozenset({"width", "ngram_length"})
    Settings = NoSettings
    each_place = False

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: TokenSizes) -> NgramEncoder:
        return NgramEncoder(sizes.vocabulary, config.width, config.ngram_length)

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        return [EncoderComponent(f"{config.width} n-grams of up to {config.ngram_length} tokens")]
