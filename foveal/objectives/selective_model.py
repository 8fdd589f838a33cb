"""A model with a small one beside."""

from foveal.models.encoder import Encoded

PROXY = "proxy."
"""How the names of a proxy's weights begin."""


class Proxied(Encoded):
    """An `Encoded`, and a small one of the same classes, its `proxy`, that learns beside it and is asked in
    training alone."""

    def __init__(self, model: Encoded, proxy: Encoded):
        super().__init__(model.encoder, model.head)
        self.proxy = proxy
