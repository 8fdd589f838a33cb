"""What DRAW writes and where it says that it wrote, number by number, on a canvas that is not square."""

import math

import torch

from foveal.config import ModelConfig
from foveal.tasks.config import load_config
from foveal.tasks.draw.model import DrawModel
from foveal.training.optim import decayed_parameters

H, W, N = 5, 9, 3
WINDOW = [-0.2, 0.3, -0.5, -0.9, 0.4]
"""`g_X, g_Y, log sigma^2, log delta, log gamma` before they are brought to the canvas."""


def filters(centre: float, extent: int) -> list[list[float]]:
    """`F[i][a]`, i and a from 1 (Gregor et al. 2015, equations 19 to 25)."""
    delta, variance = (W - 1) / (N - 1) * math.exp(WINDOW[3]), math.exp(WINDOW[2])
    found = []
    for i in range(1, N + 1):
        mean = (extent + 1) / 2 * (centre + 1) + (i - N / 2 - 0.5) * delta
        row = [math.exp(-((a - mean) ** 2) / (2 * variance)) for a in range(1, extent + 1)]
        found.append([value / sum(row) for value in row])
    return found


def test_windows_are_the_means_of_the_first_and_last_filters() -> None:
    config = ModelConfig.model_validate({"width": 6, "layers": 1, "mixers": "lstm"})
    model = DrawModel(config, H, W, steps=2, latent=2, read=5, write=N).double()
    with torch.no_grad():
        model.write_window.weight.zero_()
        model.write_window.bias.copy_(torch.tensor(WINDOW))
        drawn = model.sample(torch.randn(4, 2, 2, dtype=torch.float64))
    window = torch.tensor(WINDOW).double()
    rows, columns = filters(float(window[1]), H), filters(float(window[0]), W)
    ends = [rows[0], rows[-1], columns[0], columns[-1]]
    expected = [sum(place * share for place, share in enumerate(one)) for one in ends]
    assert len({round(place, 1) for place in expected}) == 4
    torch.testing.assert_close(
        drawn.write_windows, torch.tensor(expected).double().expand(4, 2, 4), rtol=0, atol=1e-6
    )


def test_the_canvas_takes_no_weight_decay() -> None:
    """The canvas is where drawing starts. It has two axes, but maps no vector to another."""
    draw = DrawModel(load_config("draw", []).model, 4, 4, steps=1, latent=1, read=2, write=2)
    assert draw.canvas.dim() == 2
    assert draw.canvas not in decayed_parameters(draw)
