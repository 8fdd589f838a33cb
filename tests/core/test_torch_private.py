"""Without each private part of torch, the public way gives equal results, and one line says so."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import foveal
from foveal.core import torch_private
from foveal.core.errors import UserError
from foveal.core.log import notify_with
from foveal.inspection import operation_mode
from foveal.layers.ngram_lookup import NgramLookup
from foveal.ops.attention.dot_product import attention
from foveal.ops.jit.dispatch import record_paths
from foveal.ops.recurrent.cells import fused_lstm
from foveal.ui.console import log

PACKAGE = Path(foveal.__file__).parent


def foreach() -> list[Tensor]:
    tensors = [torch.randn(3, 2), torch.randn(4)]
    torch_private.multiply_all(tensors, 0.7)
    torch_private.interpolate_all(tensors, [torch.randn(3, 2), torch.randn(4)], 0.1)
    torch_private.clamp_all(tensors, 0.5)
    return tensors


def softmax_gradients() -> list[Tensor]:
    weights = torch.randn(2, 3, 5).softmax(-1)
    return [
        torch_private.softmax_backward(torch.randn(2, 3, 5).to(dtype), weights.to(dtype)).float()
        for dtype in (torch.float32, torch.bfloat16)
    ]


def causal_attention() -> list[Tensor]:
    """In chunks, and with a mask of keys that is too long for other kernels."""
    q, k, v = (torch.randn(1, 2, 1040, 8, requires_grad=True) for _ in range(3))
    keys = torch.ones(1, 1, 1, 1040, dtype=torch.bool)
    keys[..., 500:600] = False
    results = [attention(q, k, v, causal=True, window=40), attention(q, k, v, keys, causal=True)]
    return [*results, *torch.autograd.grad(results[0].sum() + results[1].square().sum(), (q, k, v))]


def low_precision_lstm() -> list[Tensor]:
    weights = [torch.randn(16, size) * 0.3 for size in (3, 4)] + [torch.randn(16) for _ in range(2)]
    h, c = torch.randn(2, 4), torch.randn(2, 4)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        return [part.float() for part in fused_lstm(torch.randn(2, 6, 3), h, c, weights, None)]


def looked_up() -> list[Tensor]:
    """A text that is stored later is looked up; an unchanged one is sorted once."""
    layer, followers = NgramLookup(5, 4, 3), []
    for text in (torch.tensor([0, 1, 2] * 4), torch.tensor([0, 1, 3] * 4)):
        layer.store_text(text)
        ngrams = layer._ngrams()
        assert layer._ngrams() is ngrams
        followers.append(layer.look_up(torch.tensor([[0, 1]]), layer.init_state(1), None)[0])
    assert not torch.equal(*followers)
    return followers


def hooked() -> list[Tensor]:
    return [torch.tensor(torch_private.may_have_hooks(HOOKED))]


RESULTS = {
    **dict.fromkeys((f"_foreach_{name}_" for name in ("mul", "clamp_min", "clamp_max", "lerp")), foreach),
    "_softmax_backward_data": softmax_gradients,
    "_scaled_dot_product_flash_attention_for_cpu": causal_attention,
    "_is_mkldnn_bf16_supported": low_precision_lstm,
    "_version": looked_up,
    "_forward_hooks": hooked,
}
HOOKED = nn.Linear(1, 1)
HOOKED.register_forward_hook(lambda *_: None)
OWNERS = {
    "_scaled_dot_product_flash_attention_for_cpu": torch.ops.aten,
    "_is_mkldnn_bf16_supported": torch.ops.mkldnn,
    "_version": Tensor,
}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch):
    """Nothing is remembered of what torch has, and all lines are kept."""
    lines: list[str] = []
    notify_with(lines.append)
    for remembered in (torch_private.has_private, torch_private._has_bfloat16_lstm):
        remembered.cache_clear()
    yield lines
    monkeypatch.undo()
    notify_with(log)
    for remembered in (torch_private.has_private, torch_private._has_bfloat16_lstm):
        remembered.cache_clear()


def take_away(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "_forward_hooks":
        monkeypatch.setattr(nn.Module, name, property(fset=lambda *_: None), raising=False)
    elif name in OWNERS:
        monkeypatch.setattr(OWNERS[name], name, None)
    else:
        monkeypatch.delattr(torch, name)


@pytest.mark.parametrize("name", RESULTS)
def test_the_public_way_gives_equal_results(name, fresh, monkeypatch):
    torch.manual_seed(1)
    with record_paths() as before:
        expected = RESULTS[name]()
    assert torch_private.has_private(name)
    assert fresh == []
    torch_private.has_private.cache_clear()
    torch_private._has_bfloat16_lstm.cache_clear()

    take_away(name, monkeypatch)
    torch.manual_seed(1)
    with record_paths() as after:
        results = RESULTS[name]()
    assert not torch_private.has_private(name)
    for result, wanted in zip(results, expected, strict=True):
        rounding = 0.02 if name in ("_is_mkldnn_bf16_supported", "_softmax_backward_data") else 2e-5
        torch.testing.assert_close(result, wanted, rtol=rounding, atol=rounding)
    (line,) = fresh
    assert re.fullmatch(rf"torch \S+ has no {name} as expected \(.*\): a slower way computes the same", line)
    if name == "_scaled_dot_product_flash_attention_for_cpu":
        assert (before, after) == (["attention:chunks", "attention:keys"], ["attention:fused"] * 2)


def test_every_private_part_has_its_case():
    assert RESULTS.keys() == torch_private.EXAMPLES.keys()


def test_a_part_with_other_arguments_counts_as_missing(fresh, monkeypatch):
    monkeypatch.setattr(torch, "_foreach_mul_", lambda tensors, factor, wanted: None)
    (product,) = [torch.ones(2)]
    torch_private.multiply_all([product], 3.0)
    assert product.tolist() == [3.0, 3.0]
    assert "missing 1 required positional argument" in fresh[0]


PRIVATE = re.compile(r"torch[\w.]*\._[a-z]\w*|\baten\._\w+|\._(version|forward_hooks|forward_pre_hooks)\b")


@pytest.mark.parametrize("line", ["torch._foreach_mul_(x)", "torch.ops.aten._unsafe_view", "x._version"])
def test_a_private_part_is_recognized(line):
    assert PRIVATE.search(line)


def test_no_other_file_names_a_private_part():
    names = (
        "core/torch_private.py",
        "inspection/operation_mode.py",
        "studies/plan/torch_parts.py",
        "distributed/bfloat16_weights.py",
        "distributed/weight_groups.py",
    )
    allowed = {PACKAGE / name for name in names}
    places = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted({*PACKAGE.rglob("*.py")} - allowed)
        for line in path.read_text(encoding="utf-8").splitlines()
        if PRIVATE.search(line) and "`torch._grouped_mm`" not in line
    ]
    assert places == []


@pytest.mark.parametrize("part", ["torch.utils._python_dispatch", "torch.utils.flop_counter"])
def test_views_of_operations_are_refused_in_one_line(part, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, part, None)
        module = importlib.reload(operation_mode)
        with pytest.raises(UserError, match=rf"torch \S+ has no {re.escape(part)}\.\w+, which this view"):
            module.OperationMode() if part.endswith("dispatch") else module.flop_formulas()
    importlib.reload(operation_mode)
