"""A model with a small one beside."""

from foveal.models.encoder import Encoded


class Judged(Encoded):
    """An `Encoded`, and a small one of the same classes, its `judge`, that learns beside it and is asked in
    training alone."""

    def __init__(self, model: Encoded, judge: Encoded):
        super().__init__(model.encoder, model.head)
        self.judge = judge
