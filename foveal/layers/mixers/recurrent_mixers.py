"""The built-in recurrent mixers: a vanilla RNN, LSTM and GRU, each of which runs its cell."""

from typing import Literal

from foveal.config.values import StrictModel
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer


class RNN(Recurrent):
    """`h_t = tanh(W_h h_(t-1) + W_x x_t + b)`: a vanilla network, which runs an `ElmanCell` (Elman 1990).

    Example:

        >>> y, state = layers.RNN(8, 16, "relu")(torch.randn(2, 5, 8))
        >>> tuple(y.shape), tuple(state["h"].shape)
        ((2, 5, 16), (2, 16))
    """

    def __init__(
        self,
        d_in: int,
        width: int,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        learned_start: bool = False,
    ):
        super().__init__(ElmanCell(d_in, width, nonlinearity), learned_start)


class LSTM(Recurrent):
    """Long short-term memory, which runs an `LSTMCell` (Hochreiter and Schmidhuber 1997).

    Example:

        >>> y, state = layers.LSTM(8, 16)(torch.randn(2, 5, 8))
        >>> tuple(y.shape), tuple(state["h"].shape), tuple(state["c"].shape)
        ((2, 5, 16), (2, 16), (2, 16))
    """

    def __init__(self, d_in: int, width: int, learned_start: bool = False):
        super().__init__(LSTMCell(d_in, width), learned_start)


class GRU(Recurrent):
    """The gated recurrent unit, which runs a `GRUCell` (Cho et al. 2014).

    Example:

        >>> gru, x = layers.GRU(8, 16), torch.randn(2, 5, 8)
        >>> whole, _ = gru(x)
        >>> first, state = gru(x[:, :3])
        >>> rest, _ = gru(x[:, 3:], state)  # goes on where the first part has ended
        >>> torch.allclose(torch.cat([first, rest], 1), whole, atol=1e-6)
        True
    """

    def __init__(self, d_in: int, width: int, reset_after: bool = True, learned_start: bool = False):
        super().__init__(GRUCell(d_in, width, reset_after), learned_start)


class LSTMSettings(StrictModel):
    learned_initial_state: bool = False
    """The first state is learned; it is zeros otherwise."""


class ElmanSettings(LSTMSettings):
    nonlinearity: Literal["tanh", "relu"] = "tanh"
    """Activation function of the state: tanh or relu."""


class GRUSettings(LSTMSettings):
    reset_after: bool = True
    """The reset gate multiplies after the recurrent product (cuDNN, torch), not before (Cho)."""


@register_mixer("rnn")
class ElmanSpec(MixerSpec[ElmanSettings]):
    Settings = ElmanSettings

    def make(self, place: MixerPlace[ElmanSettings]) -> RNN:
        settings = place.settings
        return RNN(place.d_in, place.width, settings.nonlinearity, settings.learned_initial_state)


@register_mixer("lstm")
class LSTMSpec(MixerSpec[LSTMSettings]):
    Settings = LSTMSettings

    def make(self, place: MixerPlace[LSTMSettings]) -> LSTM:
        return LSTM(place.d_in, place.width, place.settings.learned_initial_state)


@register_mixer("gru")
class GRUSpec(MixerSpec[GRUSettings]):
    Settings = GRUSettings

    def make(self, place: MixerPlace[GRUSettings]) -> GRU:
        settings = place.settings
        return GRU(place.d_in, place.width, settings.reset_after, settings.learned_initial_state)
