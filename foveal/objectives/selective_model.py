"""A model with a small one beside."""

from foveal.models.encoder import EncoderWithHead

PROXY_PREFIX = "proxy."
"""How the names of a proxy's weights begin."""


class ModelWithProxy(EncoderWithHead):
    """An `EncoderWithHead`, and a small one of the same classes, its `proxy`, that learns beside it and is
    asked in training alone."""

    def __init__(self, model: EncoderWithHead, proxy: EncoderWithHead):
        super().__init__(model.encoder, model.head)
        self.proxy = proxy
