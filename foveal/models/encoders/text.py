"""The encoders of texts of tokens."""

from foveal.config import ConfigError, EncoderConfig, StackConfig
from foveal.encoders.elmo import BidirectionalLayers, ElmoEncoder
from foveal.encoders.ngrams import NgramEncoder
from foveal.encoders.text import TextEncoder
from foveal.layers.embedding import Embedding
from foveal.models.encoder import text_encoder
from foveal.models.encoder_registry import EncoderComponent, EncoderSpec, TokenSizes, register_encoder
from foveal.models.stack import MixerFactory, make_stack
from foveal.models.stack_settings import TOKEN_ENCODER
from foveal.plugins.constructor_settings import NoSettings

DIRECTION = ("mixers", "layers", "residual", "dropout")
"""The settings of each direction of a bidirectional language model."""


@register_encoder("text")
class TextSpec(EncoderSpec[NoSettings]):
    reads = ("text",)
    shared_settings = TOKEN_ENCODER
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: TokenSizes) -> TextEncoder:
        return text_encoder(config, sizes.vocabulary, sizes.max_length)


@register_encoder("elmo")
class ElmoSpec(EncoderSpec[NoSettings]):
    reads = ("text",)
    shared_settings = frozenset({*DIRECTION, "width"})
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: TokenSizes) -> ElmoEncoder:
        return ElmoEncoder(bidirectional_layers(config, sizes.vocabulary))


def bidirectional_layers(config: EncoderConfig, vocabulary: int) -> BidirectionalLayers:
    """Make the layers of a bidirectional language model. Each direction has half of the width.

    Raises: ConfigError: the width is odd.
    """
    if config.width % 2:
        raise ConfigError(f"two directions need an even width, not model.encoder.width={config.width}")
    half = config.width // 2
    read = {name: getattr(config, name) for name in DIRECTION}
    direction = StackConfig(width=half, **read, **config.part_tables)
    there, back = (make_stack(MixerFactory(direction, "model.encoder"), half, 0) for _ in range(2))
    return BidirectionalLayers(Embedding(vocabulary, half), [*there.blocks], [*back.blocks])


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
