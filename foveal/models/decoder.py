"""Decoders from a config: language models, and decoders that read a memory."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.config import ConfigError, ModelConfig
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.mixers.registry import mixer_specs
from foveal.layers.ngram_lookup import NgramLookup
from foveal.models.stack import MixerFactory, make_embedding, make_embedding_norm, make_last_norm, make_stack


class DecoderMixerFactory(MixerFactory):
    """Makes the mixers of a stack that reads a memory of width `memory_width`.

    Raises: ConfigError: no mixer reads the memory.
    """

    def __init__(self, config: ModelConfig, memory_width: int):
        super().__init__(config, memory_width=memory_width)
        if not any(spec.reads_memory for spec, _ in self.mixers.values()):
            readers = [name for name, spec in mixer_specs().items() if spec.reads_memory]
            raise ConfigError(
                f"model.mixers={config.mixers} never reads the source: use a mixer that reads it "
                f"({', '.join(readers)}), alone or with another (such as attention+{readers[-1]})"
            )


class LanguageModel(nn.Module):
    """`logits = model(tokens, lengths)`: the logits (B, T, V) of the token after each token.

    `head` is the decoder, with whose state a text is generated.
    """

    def __init__(self, head: DecoderLM):
        super().__init__()
        self.head = head

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T V"]:
        features, _, _ = self.head(tokens, None, lengths)
        return self.head.project(features)


def language_model(config: ModelConfig, vocabulary: int, context: int) -> DecoderLM:
    """Make a language model over `vocabulary` tokens; a learned position table has `context` positions."""
    return _decoder_lm(config, MixerFactory(config), vocabulary, context, lookup=config.ngram_lookup)


def decoder(
    config: ModelConfig,
    vocabulary: int,
    context: int,
    memory_width: int,
    shared: Embedding | OneHot | None = None,
) -> DecoderLM:
    """Make a decoder that reads a memory of width `memory_width`.

    A learned position table has `context` positions. `shared` is the encoder's embedding, which the decoder
    then uses.
    """
    return _decoder_lm(config, DecoderMixerFactory(config, memory_width), vocabulary, context, shared)


def _decoder_lm(
    config: ModelConfig,
    mixers: MixerFactory,
    vocabulary: int,
    context: int,
    shared: Embedding | OneHot | None = None,
    lookup: int = 0,
) -> DecoderLM:
    embedding = make_embedding(config, vocabulary) if shared is None else shared
    followers = NgramLookup(vocabulary, embedding.width, lookup) if lookup else None
    stack = make_stack(mixers, embedding.width, context)
    last, first = make_last_norm(config), make_embedding_norm(config, embedding.width)
    tied, bias = config.tie_embeddings, config.projection_bias
    return DecoderLM(embedding, stack, config.width, last, tied, first, bias, followers)
