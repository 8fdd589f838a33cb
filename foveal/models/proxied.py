"""A model with a small one beside."""

from collections.abc import Sequence

from foveal.models.encoder import Encoded
from foveal.models.ensemble import Ensemble


class Proxied(Ensemble):
    """Members, and a small model of the same classes, their `proxy`, that learns beside them and is asked in
    training alone."""

    def __init__(self, members: Sequence[Encoded], proxy: Encoded):
        super().__init__(members)
        self.proxy = proxy
