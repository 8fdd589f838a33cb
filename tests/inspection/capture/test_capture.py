"""`foveal.capture`: names, patterns that match nothing, budgets, copies, compiled models."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from foveal import UserError, capture, create_model
from foveal.ops.jit.dispatch import record_paths

SETTINGS = {"model.width": 16, "model.layers": 2}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return create_model("attention", vocabulary=9, settings=SETTINGS).eval()


TOKENS = torch.randint(9, (2, 6), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*/wieghts", "'*/wieghts' matches no value: near it are head.stack.blocks.0.mixer/weights, head"),
        ("head.stack.blocks.7/features", "near it are head.stack.blocks.1/features, head.stack.blocks.0"),
        ("xyz", "the model offers */output, */weights, */features, such as /output"),
        ("grad:*/weights", "such as grad:/output"),
        ("grad:*/features", "grad:head.stack.blocks.0/features: the model ran without gradients: no torch"),
    ],
)
def test_a_pattern_that_matches_nothing(model, pattern, message):
    with torch.inference_mode(), pytest.raises(UserError) as error, capture(model, "*/features", pattern):
        model(TOKENS)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_errors_of_the_block_come_first(model):
    with pytest.raises(ZeroDivisionError), capture(model, "xyz"):
        raise ZeroDivisionError


def test_budget_and_dry_run(model):
    """Sizes are those of a whole capture; beyond the budget nothing is kept."""
    features = "head.stack.blocks.{}/features"
    with torch.inference_mode(), capture(model, "*/features", "*/weights", dry_run=True) as record:
        model(TOKENS)
    size = 2 * 6 * 16 * 4
    sizes = {"head.stack.blocks.0/features": size, "head.stack.blocks.0.mixer/weights": 2 * size}
    assert sizes.items() <= record.sizes().items()
    assert sorted(record.names()) == sorted(record.sizes())
    assert not record
    with pytest.raises(UserError, match="dry run keeps nothing"):
        record["head.stack.blocks.0/features"]
    with torch.inference_mode(), pytest.raises(UserError) as error, capture(model, "*/f*", budget=size):
        model(TOKENS)
    assert "take 1.5 kB (1.5 KiB), more than the budget of 768 B, so none is kept" in str(error.value)
    assert f"sizes: {features.format(0)} 768 B, {features.format(1)} 768 B" in str(error.value)
    with torch.inference_mode(), capture(model, "*/features", budget=2 * size) as record:
        model(TOKENS)
    assert len(record) == 2
    with pytest.raises(UserError, match="was not captured: near it are head"):
        record["head.stack.blocks.1/feature"]
    with pytest.raises(UserError, match="budget='lots' is no size"), capture(model, budget="lots"):
        pass


def test_whole_weights_need_room(model):
    """The weights of a long text are not computed by mistake; a tile is."""
    tokens = TOKENS[:1].repeat(1, 40)
    with torch.inference_mode(), capture(model, "*.0.mixer/weights", budget="50kB") as record:
        model(tokens)
    weights = record["head.stack.blocks.0.mixer/weights"]
    assert weights.shapes == [(1, 4, 240, 240)]
    with pytest.raises(UserError, match=r"4 heads x 240 queries x 240 keys take 921.6 kB .* ask for a tile"):
        weights[0]
    assert weights.weights(heads=1, rows=slice(5), columns=[0, 3]).shape == (1, 1, 5, 2)
    with pytest.raises(UserError, match="has 4 heads, 240 queries and 240 keys, counted from 0: heads=4"):
        weights.weights(heads=4, rows=0)


def test_values_are_copies():
    """A layer that writes into its input, as ReLU of torchvision's models, changes no record."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))
    with capture(model) as record:
        y = model(torch.randn(5, 3))
    assert (record["0/output"][0] < 0).any()
    assert torch.equal(record["1/output"][0], y)
    assert record["0/output"].dims == ()
    with pytest.raises(UserError, match="0/output is no attention"):
        record["0/output"].weights()


@pytest.mark.parametrize("whole", [True, False])
def test_compiled_modules_run_eagerly(whole):
    """Also if they were compiled and called before: the values and names are those of the plain model."""
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.randn(5, 3)
    compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
    outside, prefix = (compiled, "") if whole else (nn.Sequential(compiled), "0.")
    with torch.no_grad():
        expected = outside(x)
        with capture(outside, "*0/output", "*1/output") as record:
            outside(x)
    assert [name for name in record if name != "0/output" or whole] == [
        prefix + "0/output",
        prefix + "1/output",
    ]
    torch.testing.assert_close(record[prefix + "1/output"][0], expected)


@pytest.mark.slow
def test_closed_taps_leave_a_whole_graph(tmp_path):
    """In a process of its own: the checks of types, which tests add, cannot be compiled."""
    code = """
import torch, foveal
for mixer in ("attention", "lstm"):
    model = foveal.create_model(mixer, vocabulary=9, settings={"model.width": 16, "model.layers": 1}).eval()
    tokens = torch.randint(9, (2, 6))
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(tokens), model(tokens))
    with foveal.capture(compiled, "*/features") as record:
        compiled(tokens)
    assert record.names() == ["head.stack.blocks.0/features"]
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_open_or_closed_no_bit_changes(model):
    """The kernels stay those that run without a capture."""
    with torch.inference_mode():
        with record_paths() as before:
            expected = model(TOKENS)
        with capture(model), record_paths() as during:
            assert torch.equal(model(TOKENS), expected)
        assert during == before
        with record_paths() as after:
            assert torch.equal(model(TOKENS), expected)
    assert after == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_capture_inside_a_capture_takes_nothing_from_it(model):
    with torch.inference_mode(), capture(model, "*/features", "*.0.mixer/weights") as outer:
        model(TOKENS)
        with capture(model, "*/weights") as inner:
            model(TOKENS)
        model(TOKENS)
    assert {name: len(record) for name, record in outer.items()} == {
        "head.stack.blocks.0.mixer/weights": 3,
        "head.stack.blocks.0/features": 3,
        "head.stack.blocks.1/features": 3,
    }
    assert {name: len(record) for name, record in inner.items()} == {
        "head.stack.blocks.0.mixer/weights": 1,
        "head.stack.blocks.1.mixer/weights": 1,
    }
