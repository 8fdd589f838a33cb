"""A pyramid of bidirectional LSTM layers. Each layer except the first halves the length."""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.blocks.mixer_block import Block
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.recurrent_mixers import LSTM


class PyramidalLSTM(nn.Module):
    """`h_t^j = BLSTM(h_(t-1)^j, [h_(2t)^(j-1), h_(2t+1)^(j-1)])` (Chan et al. 2016, equation 5).

    The first layer reads single steps. Each direction has half of `width`, and the outputs of both are
    concatenated. If the length is odd, the last step is paired with zeros.

    Example:

        >>> pyramid = layers.PyramidalLSTM(80, width=16, layers=3)
        >>> y, lengths = pyramid(torch.randn(2, 12, 80), torch.tensor([12, 7]))
        >>> tuple(y.shape), lengths.tolist()
        ((2, 3, 16), [3, 2])

    Raises: ValueError: the width is odd.
    """

    def __init__(self, d_in: int, width: int, layers: int, dropout: float = 0.0):
        super().__init__()
        if width % 2:
            raise ValueError(f"bidirectional mixers need an even width, not {width}")
        sizes = [d_in] + [2 * width] * (layers - 1)
        self.blocks = nn.ModuleList(
            Block(
                Bidirectional(LSTM(size, width // 2), LSTM(size, width // 2)),
                dropout=dropout,
            )
            for size in sizes
        )

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B S E"], Int[Tensor, " B"] | None]:
        """Return the outputs of the top layer, zeros in the padding, and their lengths."""
        for index, block in enumerate(self.blocks):
            if index:
                x = join_pairs(x)
                lengths = None if lengths is None else (lengths + 1) // 2
            x, _, _ = block(x, lengths=lengths)
        return x, lengths


def join_pairs(x: Float[Tensor, "B T D"]) -> Float[Tensor, "B S E"]:
    """Concatenate steps 2t and 2t + 1: (B, ceil(T / 2), 2 D). The padding of `x` must be zeros."""
    return F.pad(x, (0, 0, 0, x.shape[1] % 2)).reshape(x.shape[0], -1, 2 * x.shape[2])
