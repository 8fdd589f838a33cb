"""Images to a memory: its parts, and images of a batch that don't know each other."""

import pytest
import torch

from foveal.encoders.image import ImageEncoder
from foveal.laws import encoder_laws as laws
from foveal.layers.vision.conv2d import ConvNormAct
from foveal.layers.vision.residual import ResidualBlock, basic_block
from tests.support.gradients import gradient_of

D = 6


def encoder() -> ImageEncoder:
    torch.manual_seed(0)
    return ImageEncoder(
        [ConvNormAct(3, 4, 3), ResidualBlock(basic_block(4, D, 2), 4, D, 2, "padded")], D
    ).double()


def test_a_memory_holds_the_map_row_by_row():
    x = torch.randn(2, 3, 4, 6)
    memory, _ = ImageEncoder([torch.nn.Identity()], 3)(x)
    for place in range(24):
        assert torch.equal(memory.vectors[:, place], x[:, :, place // 6, place % 6])
    torch.testing.assert_close(memory.summary, x.mean((2, 3)))
    assert memory.mask.shape == (2, 24)
    assert memory.mask.all()
    (segment,) = memory.segments
    assert (segment.start, segment.length, segment.kind, segment.grid) == (0, 24, "grid", (4, 6))


@pytest.mark.parametrize(("h", "w"), [(8, 8), (7, 10), (1, 2)])
def test_an_image_alone_is_the_image_in_the_batch(h, w):
    made, x = encoder().eval(), torch.randn(4, 3, h, w, dtype=torch.float64)
    memory, aux = made(x)
    assert aux == {}
    assert memory.segments[0].grid == ((h + 1) // 2, (w + 1) // 2)
    assert made.grid(h) == ((h + 1) // 2, (h + 1) // 2)
    for row in range(4):
        alone, _ = made(x[row : row + 1])
        laws.near(alone.vectors[0], memory.vectors[row])
        laws.near(alone.summary[0], memory.summary[row])


def test_every_parameter_learns():
    made = encoder()
    memory, _ = made(torch.randn(4, 3, 8, 8, dtype=torch.float64))
    (memory.vectors**3).sum().backward()
    for name, parameter in made.named_parameters():
        assert gradient_of(parameter).isfinite().all(), name
        assert gradient_of(parameter).ne(0).any(), name


def test_the_layout_of_images_changes_nothing_and_weights_keep_theirs():
    made, x = encoder(), torch.randn(4, 3, 8, 8, dtype=torch.float64)
    memory, _ = made(x)
    other, _ = made(x.contiguous(memory_format=torch.channels_last))
    assert torch.equal(memory.vectors, other.vectors)
    assert memory.vectors.is_contiguous()
    memory.vectors.square().sum().backward()
    for parameter in made.parameters():
        assert parameter.is_contiguous()
        assert gradient_of(parameter).is_contiguous()
