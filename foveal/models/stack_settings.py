"""The settings that the parts of models read: stacks, and each kind of encoder."""

from collections.abc import Iterable

from foveal.config import EncoderConfig, EncoderStackConfig, StackConfig
from foveal.config.model import EncoderName

TOKEN_STACK = frozenset(StackConfig.model_fields)
"""The settings of a stack of blocks behind an embedding of tokens."""
VECTOR_STACK = TOKEN_STACK - {"embedding_width"}
"""The settings of a stack of blocks that vectors come into."""
DECODER = TOKEN_STACK | {"tie_embeddings", "projection_bias"}
"""The settings of a stack that predicts tokens."""
TOKEN_ENCODER = frozenset(EncoderStackConfig.model_fields)
VECTOR_ENCODER = TOKEN_ENCODER - {"embedding_width"}
NETWORK = frozenset({"network", "stem", "network_activation", "network_norm"})
"""The settings of a named network for images."""
ENCODERS: dict[EncoderName, frozenset[str]] = {
    "none": frozenset(),
    "text": TOKEN_ENCODER,
    "ngrams": frozenset({"width", "ngram_length"}),
    "words": VECTOR_ENCODER | {"embedding_width", "character_width", "character_filters", "word_dropout"},
    "pyramid": frozenset({"width", "layers", "dropout"}),
    "convolution": VECTOR_ENCODER,
    "series": VECTOR_ENCODER,
    "series-network": frozenset({"network"}),
    "image": NETWORK,
    "patches": VECTOR_ENCODER | {"patch_size"},
    "frames": VECTOR_ENCODER | NETWORK,
    "conv3d": frozenset({"width", "layers"}),
}
"""The settings that the encoder of each kind reads, beside `kind`."""
PIXEL_ENCODERS: tuple[EncoderName, ...] = ("image", "patches", "frames", "conv3d")
"""The kinds of encoder that read the pixels of images or of frames."""


def encoder_settings(encoder: EncoderConfig) -> set[str]:
    """Return the keys of the settings that an encoder reads."""
    return keys_below("model.encoder", {"kind", *ENCODERS[encoder.kind]})


def keys_below(section: str, names: Iterable[str]) -> set[str]:
    """Return the dotted keys of settings of a section."""
    return {f"{section}.{name}" for name in names}
