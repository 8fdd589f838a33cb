"""Floating-point operations against plain formulas and against the operations of the references; memory."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal import layers
from foveal.data.core.prepared_data import PreparedData
from foveal.data.open import DataPaths
from foveal.inspection.operation_mode import FlopCounter, OperationMode
from foveal.ops.recurrent.rwkv import wkv_reference
from foveal.ops.ssm.linear_scan import linear_scan_reference
from foveal.ops.ssm.selective_scan import selective_scan_reference
from foveal.studies.compare.step_size import step_memory, training_flops
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from tests.support.command_line import TINY_MODEL

B, T, D = 2, 12, 16
FORMULAS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "rnn": (lambda: layers.RNN(D, D), 2 * T * 2 * D**2),
    "lstm": (lambda: layers.LSTM(D, D), 2 * T * 8 * D**2),
    "gru": (lambda: layers.GRU(D, D), 2 * T * 6 * D**2),
    "conv": (lambda: layers.CausalConv1d(D, D, 3), 2 * T * 3 * D**2),
    "attention": (lambda: layers.SelfAttention(D, 4), 2 * T * 4 * D**2 + 4 * T**2 * D),
    # The inner width is 2 D, and there are 16 states and a rank of D / 16 = 1.
    "mamba": (
        lambda: layers.Mamba(D),
        2 * T * (6 * D**2 + 2 * D * (1 + 32) + 2 * D) + T * 2 * D * (2 * 4 + 7 * 16 + 1),
    ),
    "s5": (lambda: layers.S5(D, states=8, blocks=2), 2 * T * (4 * 8 * D + D**2) + 8 * 8 * T),
    "time mixing": (lambda: layers.TimeMixing(D), 2 * T * 4 * D**2 + 25 * T * D),
    "channel mixing": (lambda: layers.ChannelMixing(D, hidden=64), 2 * T * (D**2 + 2 * 64 * D)),
}
"""A mixer, and the operations of a row of T vectors: twice the multiply-adds of products, and its scan."""
ARITHMETIC = ("add", "sub", "rsub", "mul", "div", "exp", "maximum", "neg", "addcmul")


def counted(module: nn.Module, compute: Callable[[], Any]) -> int:
    with torch.no_grad(), FlopCounter(module) as counter:
        compute()
    return int(counter.flops)


@pytest.mark.parametrize(("layer", "matrices"), [(layers.MLP, 2), (layers.SwiGLU, 3)])
def test_a_feedforward_layer_takes_those_of_its_matrices(layer, matrices):
    module, x = layer(D, 64), torch.randn(B, T, D)
    assert counted(module, lambda: module(x)) == B * T * 2 * matrices * D * 64


@pytest.mark.parametrize("name", FORMULAS)
def test_a_mixer_takes_the_operations_of_its_formula(name):
    make, flops = FORMULAS[name]
    module = make()
    x = torch.randn(B, T, D)
    assert counted(module, lambda: module(x)) == B * flops


def test_an_expert_layer_takes_those_of_the_experts_that_a_vector_is_sent_to():
    module = layers.Experts(D, hidden=64, count=8, active=2)
    x = torch.randn(B, T, D)
    routed = 2 * B * T * (8 * D + 2 * 2 * 64 * D)
    assert counted(module, lambda: module(x, None)) == routed


class ElementwiseCounter(OperationMode):
    """Counts an operation for each number that elementwise arithmetic returns, and that a sum reads."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "sum":
            self.count += args[0].numel()
        elif name in ARITHMETIC:
            self.count += result.numel() * ({"add": 2, "mul": 6}[name] if result.is_complex() else 1)
        return result


def elementwise(compute: Callable[[], Any]) -> int:
    with torch.no_grad(), ElementwiseCounter() as counter:
        compute()
    return counter.count


def test_the_operations_of_a_scan_are_those_of_its_reference():
    channels, states = 8, 4
    u, delta, b, c = (torch.rand(1, T, size) for size in (channels, channels, states, states))
    mamba = layers.Mamba(channels // 2, states=states)
    rates, start = torch.rand(channels, states), torch.zeros(1, channels, states)
    scan = elementwise(lambda: selective_scan_reference(u, delta, -rates, b, c, start))
    convolution = 2 * channels * 4
    assert scan - rates.numel() == T * (mamba.scan_flops - convolution)  # -rates, once
    v = torch.rand(1, T, 8, dtype=torch.complex64)
    s5 = layers.S5(D, states=8, blocks=2)
    assert elementwise(lambda: linear_scan_reference(v[0, 0], v, v[:, 0])) == T * s5.scan_flops
    k, w = torch.rand(1, T, D), torch.rand(D)
    sums = k[:, 0], k[:, 1], k[:, 2]
    assert elementwise(lambda: wkv_reference(k, k, w, w, sums)) == T * layers.TimeMixing(D).scan_flops


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedData[Any, Any]:
    notes = tmp_path_factory.mktemp("data") / "notes.txt"
    notes.write_text("A man rides a horse. A dog runs.\n" * 100)
    config = load_config("lstm", TINY_MODEL)
    return task_of(config).prepare(DataPaths(str(notes)), lambda line: None)


def test_a_model_takes_those_of_its_layers_and_its_projection_three_times(prepared):
    config = load_config("lstm", [*TINY_MODEL, "model.layers=3"])
    vocabulary, width = prepared.processor.size, 16
    assert training_flops(config, prepared) == 3 * 2 * (3 * 8 * width**2 + vocabulary * width)


@pytest.mark.parametrize("preset", ["lstm", "attention", "mamba", "moe"])
def test_a_backward_pass_takes_twice_the_products_of_a_forward_pass(preset, prepared):
    config = load_config(preset, [*TINY_MODEL, "model.width=64"])
    task = task_of(config).bind(prepared.processor)
    task = task.bind(prepared.processor, task.new_model())
    batch = task.train_batches(prepared.train).batch(0, 0)
    objective = task.objective()

    def loss() -> Tensor:
        terms = objective(batch, objective.start(batch))[0].terms.values()
        return torch.stack([term.sum for term in terms]).sum()

    with FlopCounter(task.model) as forward:
        loss()
    with FlopCounter(task.model) as both:
        loss().backward()
    scans = sum(getattr(each, "scan_flops", 0) for each in task.model.modules()) * batch.inputs.numel()
    assert both.flops - scans == pytest.approx(3 * (forward.flops - scans), rel=0.05)


def test_memory_has_weights_gradients_moments_and_activations(prepared):
    sizes = {}
    for width in (64, 256):
        config = load_config("lstm", [*TINY_MODEL, f"model.width={width}"])
        task = task_of(config).bind(prepared.processor)
        weights = sum(weight.nbytes for weight in task.new_model().parameters())
        sizes[width] = step_memory(config, prepared)
        assert 4 * weights < sizes[width] < 6 * weights + 2_000_000  # with gradient, and two moments of Adam
    longer = load_config("lstm", [*TINY_MODEL, "model.width=64", "data.batch_tokens=512"])
    assert step_memory(longer, prepared) > sizes[64] + 448 * 64 * 4 * 4  # the gates of each token
