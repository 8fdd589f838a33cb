"""Several sources in one memory: what padding and company may not change, and where each part lies."""

from itertools import permutations

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory, concat_memories
from foveal.encoders.image import ImageEncoder
from foveal.encoders.joint import JointEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.encoders.series import SeriesEncoder
from foveal.laws.encoder_laws import near
from foveal.layers.blocks.feedforward import make_feedforward
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.moe import Experts
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import GRUCell
from foveal.layers.position import AddPositions, LearnedPosition
from foveal.layers.vision.conv2d import Conv2d
from tests.support.gradients import gradient_of

D, PLACES = 6, 4
ONE, TWO = [3, 1, 0, 4], [2, 5, 3, 0]
"""Lengths of the ragged parts."""


def vectors(channels: int) -> SeriesEncoder:
    return SeriesEncoder(channels, Stack([Block(Recurrent(GRUCell(5, 5)))]), 5)


def image() -> ImageEncoder:
    return ImageEncoder([Conv2d(2, 3, 2, 2, 0, bias=True)], 3)


def encoder(positions: bool = True, names: tuple[str, ...] = ("picture", "one", "two")) -> JointEncoder:
    """Drawn so that the weights of each part are the same in every order."""
    torch.manual_seed(0)
    parts = {"picture": image(), "one": vectors(3), "two": vectors(2)}
    blocks: list[nn.Module] = [
        Block(FullAttention(D, 2), make_feedforward("mlp", D, 2.0), "layer", residual=True) for _ in range(2)
    ]
    positioned = AddPositions(LearnedPosition(20, D), "add", nn.Identity()) if positions else None
    made = JointEncoder(parts, Stack(blocks, positioned), D, nn.LayerNorm(D))
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    made.parts = nn.ModuleDict({name: made.parts[name] for name in names})
    return made.double().eval()


def sources() -> dict[str, Tensor]:
    torch.manual_seed(1)
    sizes = {"picture": (4, 2, 4, 4), "one": (4, 5, 3), "two": (4, 6, 2)}
    return {name: torch.randn(size, dtype=torch.float64) for name, size in sizes.items()}


LENGTHS = {"one": torch.tensor(ONE), "two": torch.tensor(TWO)}


def test_each_part_lies_behind_the_one_before_it():
    memory, aux = encoder()(sources(), LENGTHS)
    assert aux == {}
    assert [(part.start, part.length, part.kind) for part in memory.segments] == [
        (0, PLACES, "grid"),
        (PLACES, 5, "times"),
        (PLACES + 5, 6, "times"),
    ]
    assert memory.segments[0].grid == (2, 2)
    for row in range(4):
        held = [True] * PLACES + [t < ONE[row] for t in range(5)] + [t < TWO[row] for t in range(6)]
        assert memory.mask[row].tolist() == held
    assert memory.vectors[~memory.mask].eq(0).all()
    assert memory.vectors[memory.mask].ne(0).all()
    counts = memory.mask.sum(1, keepdim=True)
    near(memory.summary, memory.vectors.sum(1) / counts)


def test_what_is_seen_is_what_stands_there_without_holes():
    """Row by row: the parts' own vectors mapped, one behind the other, through the same stack."""
    made, given = encoder(), sources()
    memory, _ = made(given, LENGTHS)
    for row in range(4):
        pieces = []
        for name, lengths in (("picture", None), ("one", ONE), ("two", TWO)):
            own = given[name][row : row + 1]
            if lengths is not None:
                own = own[:, : lengths[row]]
            if own.numel():
                found = made.parts[name](own)[0].vectors
                pieces.append(found @ made.maps[name].weight.T + made.maps[name].bias)
        x = torch.cat(pieces, 1)
        x = made.norm(made.stack(x, None)[0])
        near(memory.vectors[row][memory.mask[row]], x[0])


def test_a_row_alone_is_the_row_in_the_batch():
    made, given = encoder(), sources()
    memory, _ = made(given, LENGTHS)
    for row in range(4):
        own = {name: source[row : row + 1] for name, source in given.items()}
        alone, _ = made(own, {name: lengths[row : row + 1] for name, lengths in LENGTHS.items()})
        near(alone.vectors[0], memory.vectors[row])
        near(alone.summary[0], memory.summary[row])


def test_padding_of_each_part_changes_nothing():
    made, found = encoder(), []
    for poisoned in (None, "one", "two"):
        given = sources()
        if poisoned is not None:
            for row, length in enumerate(LENGTHS[poisoned].tolist()):
                given[poisoned][row, length:] = torch.nan
        leaves = [source.requires_grad_() for source in given.values()]
        memory, _ = made(given, LENGTHS)
        loss = (memory.vectors**2).sum() + (memory.summary**3).sum()
        found.append(
            [memory.vectors, memory.summary, *torch.autograd.grad(loss, [*made.parameters(), *leaves])]
        )
    assert all(part.isfinite().all() for part in found[0])
    for others in found[1:]:
        assert all(map(torch.equal, found[0], others))


def test_the_order_of_parts_moves_them_and_changes_nothing_else():
    """Without positions the stack sees a set."""
    first, _ = encoder(False)(sources(), LENGTHS)
    pieces = dict(zip(("picture", "one", "two"), first.vectors.split([PLACES, 5, 6], 1), strict=True))
    for names in permutations(pieces):
        memory, _ = encoder(False, names)(sources(), LENGTHS)
        near(memory.vectors, torch.cat([pieces[name] for name in names], 1))
        near(memory.summary, first.summary)


def test_gradients_reach_every_part():
    made = encoder()
    memory, _ = made(sources(), LENGTHS)
    (memory.vectors**3).sum().backward()
    for name, parameter in made.named_parameters():
        assert gradient_of(parameter).isfinite().all(), name
        assert gradient_of(parameter).ne(0).any(), name


def test_a_source_that_rows_share_is_as_if_each_had_it():
    made, given = encoder(), sources()
    which = torch.tensor([1, 0, 1, 1])
    shared = {**given, "picture": given["picture"][:2], "picture_of": which}
    memory, _ = made(shared, LENGTHS)
    copied, _ = made({**given, "picture": given["picture"][which]}, LENGTHS)
    near(memory.vectors, copied.vectors)


def test_experts_of_a_shared_source_are_balanced_within_each_row():
    """What they ask for stands in the rows of those that share it, and beside what the stack asks for."""
    torch.manual_seed(0)
    parts = {
        "picture": PatchEncoder(2, 2, Stack([expert(5)]), 5),
        "one": SeriesEncoder(3, Stack([Block(Recurrent(GRUCell(5, 5)))]), 5),
    }
    made = JointEncoder(parts, Stack([expert(D)]), D)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    made, given, which = made.double().eval(), sources(), torch.tensor([1, 0, 2, 1])
    stacked = []
    made.stack.register_forward_hook(lambda _, given, found: stacked.append(found[2]["balance"]))
    _, aux = made({**given, "picture": given["picture"][:3], "picture_of": which}, LENGTHS)
    _, copied = made({**given, "picture": given["picture"][which]}, LENGTHS)
    near(aux["balance"], copied["balance"])
    _, own = made.parts["picture"](given["picture"][:3])
    assert own["balance"].unique().numel() == 3
    near(aux["balance"], own["balance"][which] + stacked[0])


def expert(width: int) -> Block:
    return Block(FullAttention(width, 1), Experts(width, 8, 4, 1), residual=True)


def test_a_memory_of_one_part_is_that_part():
    torch.manual_seed(0)
    memory = Memory(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    alone = concat_memories([memory])
    for name in ("vectors", "mask", "summary", "segments"):
        one, other = getattr(alone, name), getattr(memory, name)
        assert torch.equal(one, other) if isinstance(one, Tensor) else one == other
    rows = concat_memories([memory, memory]).select_rows(torch.tensor([1, 1, 0]))
    assert torch.equal(rows.vectors, torch.cat([memory.vectors] * 2, 1)[[1, 1, 0]])
    near(rows.summary, memory.summary[[1, 1, 0]])
