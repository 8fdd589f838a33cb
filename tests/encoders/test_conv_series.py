"""Networks of 1D convolutions over series: the laws, and torch's layers with the same weights."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import EncoderConfig
from foveal.encoders.conv_series import ConvSeriesEncoder
from foveal.laws import encoder_laws as laws
from foveal.layers.series.conv1d import SeriesNorm
from foveal.models.series_networks import SERIES_NETWORKS, InceptionTime, SeriesResNet

C, S = 3, 7
LENGTHS = [S, 3, 0, 1]
SMALL: dict[str, Any] = {
    "resnet-1d": SeriesResNet((4, 6, 6), (8, 5, 3)),
    "inception-time": InceptionTime(6, 3, 2, (10, 5, 2)),
}


def make(name: str, channels: int = C, networks: Any = SMALL) -> ConvSeriesEncoder:
    """Make a network in float64 whose norms are no identities."""
    torch.manual_seed(0)
    encoder: ConvSeriesEncoder = networks[name].make_encoder(channels, EncoderConfig())
    for module in encoder.modules():
        if isinstance(module, SeriesNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, 0.5, 1.0)
    return encoder.double()


def source(rows: int = len(LENGTHS), steps: int = S, channels: int = C) -> Tensor:
    return torch.randn(rows, steps, channels, dtype=torch.float64)


@pytest.mark.parametrize("name", SMALL)
def test_laws(name: str) -> None:
    encoder, x = make(name).eval(), source()
    memory = laws.shape(encoder, x, LENGTHS, LENGTHS)
    assert memory.segments[0].kind == "times"
    laws.padding(encoder, x, LENGTHS)
    laws.batch(encoder, x, LENGTHS)
    laws.every_parameter_learns(encoder, x, LENGTHS)


@pytest.mark.parametrize("name", SMALL)
def test_padding_is_not_in_the_statistics_of_a_batch(name: str) -> None:
    """In training, more padding changes no vector and no running statistic."""
    x, lengths = source(), torch.tensor(LENGTHS)
    short, long = make(name), make(name)
    longer = torch.cat([x, torch.full((len(x), 5, C), torch.nan, dtype=x.dtype)], 1)
    laws.padding(make(name), x, LENGTHS)
    laws.near(short(x, lengths)[0].vectors, long(longer, lengths)[0].vectors[:, :S])
    for one, other in zip(short.buffers(), long.buffers(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", SMALL)
def test_the_statistics_are_those_of_all_steps(name: str) -> None:
    """Batch norm of padded series is torch's over the steps one after the other."""
    x, lengths = source(), torch.tensor(LENGTHS)
    present = torch.arange(S) < lengths[:, None]
    norm, peer = SeriesNorm(C).double(), nn.BatchNorm1d(C).double()
    expected = peer(torch.cat([x[row, :length] for row, length in enumerate(LENGTHS)]))
    laws.near(norm(x.mT[:, :, None], present[:, None, None])[:, :, 0].mT[present], expected)
    torch.testing.assert_close(norm.state_dict(), peer.state_dict())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("training", [True, False])
def test_published_networks_in_plain_torch(name: str, channels: int, training: bool) -> None:
    encoder = make(name, channels, SERIES_NETWORKS).train(training)
    x = source(4, 50, channels)
    reference = {"resnet-1d": plain_resnet, "inception-time": plain_inception}[name]
    weights: dict[str, Tensor] = {**dict(encoder.named_parameters())}
    with torch.no_grad():
        expected = reference(weights, x.mT, channels, training)
        found = encoder(x, torch.full((4,), 50))[0].vectors
    torch.testing.assert_close(found, expected.mT, rtol=1e-8, atol=1e-8)


def same(x: Tensor, kernel: Tensor) -> Tensor:
    """Keras' padding "same": of an odd number of zeros, the extra zero is at the end."""
    zeros = kernel.shape[2] - 1
    padded = F.pad(x, (zeros // 2, zeros - zeros // 2))
    return torch.stack(
        [torch.einsum("bck,dck->bd", padded[:, :, t : t + zeros + 1], kernel) for t in range(x.shape[2])], 2
    )


def normed(weights: dict[str, Tensor], name: str, x: Tensor, training: bool) -> Tensor:
    gain, bias = (weights[f"{name}.{part}"][:, None] for part in ("weight", "bias"))
    if training:
        x = (x - x.mean((0, 2), keepdim=True)) / (x.var((0, 2), keepdim=True, correction=0) + 1e-5).sqrt()
    else:
        x = x / (1 + 1e-5) ** 0.5
    return x * gain + bias


def plain_resnet(weights: dict[str, Tensor], x: Tensor, channels: int, training: bool) -> Tensor:
    for block in range(3):
        y, name = x, f"blocks.{block}"
        for layer, size in enumerate((8, 5, 3)):
            kernel = weights[f"{name}.body.{layer}.convolution.weight"]
            assert kernel.shape[2] == size
            y = normed(weights, f"{name}.body.{layer}.norm", same(y, kernel), training)
            y = y if layer == 2 else y.relu()
        if block < 2:
            x = same(x, weights[f"{name}.shortcut.convolution.weight"])
            x = normed(weights, f"{name}.shortcut.norm", x, training)
        else:
            x = normed(weights, f"{name}.shortcut", x, training)
        x = (x + y).relu()
        assert x.shape[1] == (64, 128, 128)[block]
    return x


def plain_inception(weights: dict[str, Tensor], x: Tensor, channels: int, training: bool) -> Tensor:
    residual = x
    for depth in range(6):
        name = f"blocks.{depth // 3}.body.{depth % 3}"
        has_bottleneck = x.shape[1] > 1
        b = same(x, weights[f"{name}.bottleneck.weight"]) if has_bottleneck else x
        assert b.shape[1] == (32 if has_bottleneck else 1)
        parts = [same(b, weights[f"{name}.convolutions.{branch}.weight"]) for branch in range(3)]
        assert [weights[f"{name}.convolutions.{branch}.weight"].shape[2] for branch in range(3)] == [
            40,
            20,
            10,
        ]
        pooled = torch.stack([x[:, :, max(0, t - 1) : t + 2].amax(2) for t in range(x.shape[2])], 2)
        parts.append(same(pooled, weights[f"{name}.pooled.weight"]))
        x = normed(weights, f"{name}.norm", torch.cat(parts, 1), training).relu()
        if depth % 3 == 2:
            shortcut = f"blocks.{depth // 3}.shortcut"
            y = same(residual, weights[f"{shortcut}.convolution.weight"])
            x = (x + normed(weights, f"{shortcut}.norm", y, training)).relu()
            residual = x
        assert x.shape[1] == 128
    return x


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("training", [True, False])
def test_gradients(name: str, training: bool) -> None:
    """Finite differences with padding."""
    encoder, lengths = make(name, 2).train(training), torch.tensor([3, 2])
    x = source(2, 3, 2).requires_grad_()
    weights = [x, *encoder.parameters()]

    def sums(*_: Tensor) -> Tensor:
        memory, _ = encoder(x, lengths)
        return (memory.vectors**2).sum((1, 2))

    assert torch.autograd.gradcheck(sums, weights, eps=1e-6, atol=1e-4, fast_mode=True)


@pytest.mark.parametrize("name", SMALL)
def test_a_batch_of_a_single_step_keeps_the_statistics(name: str) -> None:
    encoder = make(name)
    before = [buffer.clone() for buffer in encoder.buffers()]
    assert encoder(source(1, 1))[0].vectors.isfinite().all()
    assert all(map(torch.equal, before, encoder.buffers()))
