"""Every optimizer against its written-out equation or torch.optim, in float64 over ten steps."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.core.errors import UserError
from foveal.core.stored_tensor import in_one_piece
from foveal.layers.mixers.mamba import Mamba
from foveal.training.muon import orthogonalize
from foveal.training.optim import Optimizer, decayed_parameters, hidden_matrices
from tests.support.optimizer_names import OPTIMIZER_NAMES
from tests.support.saved_files import values

STEPS, RATE, DECAY = 10, 0.05, 0.1


class Net(nn.Module):
    """A table, a hidden matrix, a projection and vectors: one of each kind of parameter."""

    not_hidden = ("table", "projection")

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.table = nn.Parameter(torch.randn(5, 4))
        self.hidden = nn.Parameter(torch.randn(4, 3))
        self.projection = nn.Linear(3, 5)
        self.double()


def gradients(net: nn.Module) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(4)
    return [
        [torch.randn(weight.shape, generator=generator, dtype=torch.float64) for weight in net.parameters()]
        for _ in range(STEPS)
    ]


def config(name: str, **values: Any) -> OptimizerConfig:
    return OptimizerConfig(name=name, **{"clip_norm": 0.0, "weight_decay": DECAY, "epsilon": 1e-3} | values)


def run_ours(net: nn.Module, settings: OptimizerConfig) -> Optimizer:
    optimizer = Optimizer(net, settings)
    for step, parts in enumerate(gradients(net)):
        for weight, gradient in zip(net.parameters(), parts, strict=True):
            weight.grad = gradient.clone()
        optimizer.step(RATE / (1 + step), optimizer.gradient_stats()[0])
    return optimizer


def equation(name: str, w: Tensor, parts: list[Tensor]) -> Tensor:
    """The update as the textbook writes it; decay on matrices only."""
    decay = DECAY if w.dim() == 2 else 0.0
    m, v, s = torch.zeros_like(w), torch.zeros_like(w), torch.zeros_like(w)
    beta1, beta2, epsilon, momentum = 0.9, 0.99, 1e-3, 0.9
    for t, g in enumerate(parts, start=1):
        rate = RATE / t
        if name == "adamw":
            w = w - rate * decay * w
        else:
            g = g + decay * w
        if name == "sgd":
            w = w - rate * g
        elif name == "momentum":
            m = momentum * m + g
            w = w - rate * m
        elif name == "adagrad":
            s = s + g**2
            w = w - rate * g / (s + epsilon).sqrt()
        elif name == "rmsprop":
            s = beta2 * s + (1 - beta2) * g**2
            w = w - rate * g / (s.sqrt() + epsilon)
        else:
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            w = w - rate * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + epsilon)
    return w


@pytest.mark.parametrize("name", [name for name in OPTIMIZER_NAMES if name != "muon"])
def test_equals_the_equation(name: str) -> None:
    net = Net()
    expected = [
        equation(name, weight.detach(), [step[i] for step in gradients(net)])
        for i, weight in enumerate(net.parameters())
    ]
    run_ours(net, config(name))
    for weight, wanted in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.detach(), wanted, rtol=1e-12, atol=1e-12)


def test_muon_is_torchs_on_hidden_matrices_and_adamw_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's is in bfloat16 everywhere."""
    monkeypatch.setattr("foveal.training.muon.has_fast_bfloat16", lambda device: True)
    ours, theirs = Net(), Net()
    run_ours(ours, config("muon"))
    muon = torch.optim.Muon(
        [theirs.hidden], lr=RATE, momentum=0.9, weight_decay=DECAY, adjust_lr_fn="match_rms_adamw"
    )
    parts = gradients(theirs)
    for step in range(STEPS):
        muon.param_groups[0]["lr"] = RATE / (1 + step)
        theirs.hidden.grad = parts[step][1].clone()
        muon.step()
    assert torch.equal(ours.hidden, theirs.hidden)
    for index, weight in enumerate(ours.parameters()):
        if weight is not ours.hidden:
            start = list(Net().parameters())[index].detach()
            wanted = equation("adamw", start, [step[index] for step in parts])
            torch.testing.assert_close(weight.detach(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 6), (8, 3), (3, 8)], ids=str)
@pytest.mark.parametrize("low_precision", [False, True])
def test_muon_brings_singular_values_near_one(shape: tuple[int, int], low_precision: bool) -> None:
    x = torch.randn(shape) * 1e3
    before, after = torch.linalg.svd(x, full_matrices=False), orthogonalize(x, low_precision).float()
    values = torch.linalg.svdvals(after)
    assert values.min() > 0.6
    assert values.max() < 1.3
    # The singular vectors are x's: between them nothing but a diagonal is left.
    core = before.U.T @ after @ before.Vh.T
    assert (core - core.diag().diag()).abs().max() < (0.05 if low_precision else 1e-3)


def test_muon_of_zeros() -> None:
    assert orthogonalize(torch.zeros(3, 4), low_precision=False).eq(0).all()


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2)], ids=["only", "none"])
def test_muon_where_all_are_hidden_matrices_or_none(shape: tuple[int, ...]) -> None:
    net = nn.ParameterList([torch.ones(shape, dtype=torch.float64)])
    run_ours(net, config("muon"))
    assert net[0].ne(1).all()


def names_of(net: nn.Module, weights: set[nn.Parameter]) -> set[str]:
    return {name for name, weight in net.named_parameters() if weight in weights}


def test_hidden_matrices_are_told_by_axes_and_what_modules_state() -> None:
    net = nn.Sequential(Net())
    assert names_of(net, hidden_matrices(net)) == {"0.hidden"}
    assert names_of(net, decayed_parameters(net)) == {"0.table", "0.hidden", "0.projection.weight"}


def test_filters_of_a_grid_are_hidden_matrices_but_not_those_of_single_channels() -> None:
    named = {
        "filters": torch.empty(8, 4, 3, 3),
        "alone": torch.empty(8, 1, 3, 3),
        "time": torch.empty(8, 4, 3),
    }
    shapes = nn.ParameterDict({name: nn.Parameter(weight) for name, weight in named.items()})
    assert names_of(shapes, hidden_matrices(shapes)) == {"filters"}
    flat, whole = nn.Linear(36, 8, bias=False).double(), nn.Conv2d(4, 8, 3, bias=False).double()
    with torch.no_grad():
        whole.weight.copy_(flat.weight.view(8, 4, 3, 3))
    for net in (flat, whole):
        optimizer = Optimizer(net, config("muon", clip_norm=0.0))
        for step in range(3):
            torch.manual_seed(step)
            net.weight.grad = torch.randn(8, 36, dtype=torch.float64).view_as(net.weight)
            optimizer.step(RATE, 1.0)
    assert torch.equal(whole.weight.flatten(1), flat.weight)


def test_numbers_of_single_channels_are_no_matrices() -> None:
    """Mamba's decays and filters have two axes, but map no vector to another."""
    mamba = Mamba(16)
    others = {"A_log", "convolution_weight", "convolution_bias", "skip", "delta.bias"}
    every = {name for name, _ in mamba.named_parameters()}
    assert every - names_of(mamba, decayed_parameters(mamba)) == others
    assert every - names_of(mamba, hidden_matrices(mamba)) == others
    optimizer = Optimizer(Mamba(16), config("sgd", weight_decay=0.5, clip_norm=0.0))
    before = {name: weight.detach().clone() for name, weight in optimizer.trainable.items()}
    for weight in optimizer.trainable.values():
        weight.grad = torch.zeros_like(weight)
    optimizer.step(1.0, 0.0)
    for name, weight in optimizer.trainable.items():
        assert torch.equal(weight.detach(), before[name] * (1.0 if name in others else 0.5)), name


def test_norm_and_largest_are_those_before_clipping() -> None:
    net = Net()
    optimizer = Optimizer(net, config("sgd", clip_norm=0.5, clip_value=0.05, weight_decay=0.0))
    before = [weight.detach().clone() for weight in net.parameters()]
    given = gradients(net)[0]
    for weight, gradient in zip(net.parameters(), given, strict=True):
        weight.grad = gradient.clone()
    flat = torch.cat([gradient.flatten() for gradient in given])
    norm, largest = optimizer.gradient_stats()
    assert norm == pytest.approx(float(flat.square().sum().sqrt()), rel=1e-12)
    assert largest == float(flat.abs().max())
    optimizer.step(1.0, norm)
    for weight, old, gradient in zip(net.parameters(), before, given, strict=True):
        clipped = (gradient * 0.5 / norm).clamp(-0.05, 0.05)
        torch.testing.assert_close(old - weight.detach(), clipped, rtol=1e-12, atol=1e-12)
    assert float((flat * 0.5 / norm).abs().max()) > 0.05, "the value clip had nothing to do"


def test_a_small_gradient_is_not_scaled_up() -> None:
    net = Net()
    optimizer = Optimizer(net, config("sgd", clip_norm=100.0, weight_decay=0.0))
    old = net.hidden.detach().clone()
    net.hidden.grad = torch.full_like(net.hidden, 0.1)
    optimizer.step(1.0, optimizer.gradient_stats()[0])
    torch.testing.assert_close(old - net.hidden.detach(), torch.full_like(old, 0.1))


@pytest.mark.parametrize("name", OPTIMIZER_NAMES)
def test_state_goes_through_named_tensors(name: str) -> None:
    """Five steps, saved, loaded into fresh objects, five more: bit-equal to ten."""
    whole = Net()
    optimizer = run_ours(whole, config(name))

    first, second = Net(), Net()
    parts = gradients(first)

    def five(net: Net, optimizer: Optimizer, steps: range) -> None:
        for step in steps:
            for weight, gradient in zip(net.parameters(), parts[step], strict=True):
                weight.grad = gradient.clone()
            optimizer.step(RATE / (1 + step), 0.0)

    before = Optimizer(first, config(name))
    five(first, before, range(5))
    second.load_state_dict(first.state_dict())
    after = Optimizer(second, config(name))
    after.load_state(in_one_piece(values(before.state())), "optimizer")
    five(second, after, range(5, STEPS))
    for weight, wanted in zip(second.parameters(), whole.parameters(), strict=True):
        assert torch.equal(weight, wanted)
    saved, wanted_state = values(after.state()), values(optimizer.state())
    assert saved.keys() == wanted_state.keys()
    assert all(torch.equal(saved[key], wanted_state[key]) for key in saved)


def test_state_that_does_not_fit_is_refused() -> None:
    optimizer = run_ours(Net(), config("adamw"))
    for key, value in (("hidden/exp_avg", torch.zeros(2, 2)), ("elsewhere/exp_avg", torch.zeros(4, 3))):
        state = in_one_piece(values(optimizer.state()) | {key: value})
        with pytest.raises(UserError, match="does not fit"):
            optimizer.load_state(state, "optimizer.safetensors")


@pytest.mark.parametrize("name", ["sgd", "momentum", "rmsprop", "adam", "adamw"])
def test_equals_torchs_class_bit_for_bit(name: str) -> None:
    """Earlier versions used the classes, and their runs go on."""
    settings = config(name, weight_decay=0.0)
    ours, theirs = Net().float(), Net().float()
    optimizer, parameters = Optimizer(ours, settings), list(theirs.parameters())
    adam: dict[str, Any] = {"betas": (0.9, 0.99), "eps": 1e-3, "weight_decay": 0.0, "fused": True}
    torchs: torch.optim.Optimizer = {
        "sgd": lambda: torch.optim.SGD(parameters),
        "momentum": lambda: torch.optim.SGD(parameters, momentum=0.9),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, alpha=0.99, eps=1e-3),
        "adam": lambda: torch.optim.Adam(parameters, **adam),
        "adamw": lambda: torch.optim.AdamW(parameters, **adam),
    }[name]()
    for step, parts in enumerate(gradients(ours)):
        for mine, other, gradient in zip(ours.parameters(), theirs.parameters(), parts, strict=True):
            mine.grad, other.grad = gradient.float(), gradient.float()
        torchs.param_groups[0]["lr"] = RATE / (1 + step)
        optimizer.step(RATE / (1 + step), optimizer.gradient_stats()[0])
        torchs.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
