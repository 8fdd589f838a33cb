"""Mixers that break a law each, as the text of a plugin."""

HEADER = """
import foveal
from torch import nn
from foveal.layers.mixers.recurrent import RecurrentCell
from foveal.ops.padding import zero_padding

class Base(nn.Module):
    bounded = True
    def __init__(self, d_in, width):
        super().__init__()
        self.d_in, self.d_out, self.map = d_in, width, nn.Linear(d_in, width)
    def reset_parameters(self):
        self.map.reset_parameters()
    def init_state(self, batch, capacity=None, memory=None):
        return {"sum": self.map.weight.new_zeros(batch, self.d_out)}
"""
KEEPS_STATE = """
@foveal.register_mixer("keeps-state")
class KeepsState(RecurrentCell):
    def __init__(self, d_in, width):
        super().__init__()
        self.d_in, self.d_out, self.sizes = d_in, width, {"h": width}
        self.input, self.last = nn.Linear(d_in, width), None
    def reset_parameters(self):
        self.input.reset_parameters()
    def project(self, x):
        return self.input(x)
    def step(self, p, state):
        fits = self.last is not None and self.last.shape == p.shape
        h = (p + state["h"] + (self.last if fits else 0)).tanh()
        self.last = h.detach()
        return h, {"h": h}
"""
PADDING_LEAKS = """
@foveal.register_mixer("padding-leaks")
class PaddingLeaks(Base):
    def forward(self, x, state=None, *, lengths=None):
        state = self.init_state(len(x)) if state is None else state
        y = self.map(x.nan_to_num()).cumsum(1) + state["sum"][:, None]
        return zero_padding(y, lengths), {"sum": y[:, -1]}
"""
SEES_FUTURE = """
@foveal.register_mixer("sees-future")
class SeesFuture(Base):
    def forward(self, x, state=None, *, lengths=None):
        state = self.init_state(len(x)) if state is None else state
        y = self.map(zero_padding(x, lengths))
        return zero_padding(y + y.mean(1, keepdim=True), lengths), state
"""
WRONG = {
    "keeps-state": (KEEPS_STATE, "keeps nothing between calls", "state is kept"),
    "padding-leaks": (PADDING_LEAKS, "padding and other rows change nothing", "padding leaks"),
    "sees-future": (SEES_FUTURE, "sees no future", "an output depends on later inputs"),
}
"""The text of each mixer, the law that it breaks, and words of what is wrong."""
