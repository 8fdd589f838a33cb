"""The settings that the parts of models read: stacks and networks."""

from collections.abc import Iterable

from foveal.config import EncoderStackConfig, StackConfig

EMBEDDING = frozenset({"embedding_width", "embedding_scale"})
"""The settings of an embedding of tokens."""
TOKEN_STACK = frozenset(StackConfig.model_fields)
"""The settings of a stack of blocks behind an embedding of tokens."""
VECTOR_STACK = TOKEN_STACK - EMBEDDING
"""The settings of a stack of blocks that vectors come into."""
DECODER = TOKEN_STACK | {"tie_embeddings", "projection_bias"}
"""The settings of a stack that predicts tokens."""
TOKEN_ENCODER = frozenset(EncoderStackConfig.model_fields)
VECTOR_ENCODER = TOKEN_ENCODER - EMBEDDING - {"segments"}
NETWORK = frozenset({"network", "stem", "network_activation", "network_norm"})
"""The settings of a named network for images."""


def keys_below(section: str, names: Iterable[str]) -> set[str]:
    """Return the dotted keys of settings of a section."""
    return {f"{section}.{name}" for name in names}
