"""Loss scaling changes nothing but under- and overflow. On a CPU, whose gradients are float32 here, too."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import resolve_precision
from foveal.store.sealed import open_json, seal_json
from foveal.training import loss_scaling
from foveal.training.loss_scaling import LossScaling
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.support.run_fingerprint import differences, fingerprint
from tests.support.toy_training import ToyBatch, toy_config, train

CPU = torch.device("cpu")
BATCH = ToyBatch(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, dtype=torch.long), None)


class Half(nn.Module):
    """`size w`, through float16: the gradient `size` times the loss's factor must fit into float16."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.5))
        self.calls: Tensor
        self.register_buffer("calls", torch.zeros(()))
        self.size = size

    def forward(self) -> Tensor:
        self.calls.add_(1)
        return (self.weight.half() * self.size).float()


class HalfObjective:
    def __init__(self, model: Half) -> None:
        self.model = model

    def __call__(self, batch: Any, carry: Any) -> tuple[ObjectiveOutput, Any]:
        y = self.model()
        return ObjectiveOutput({"loss": Term(y, 1.0)}, {"loss": (float(y.detach()), 1.0)}), None

    def weights(self, batch: Any) -> dict[str, float]:
        return {"loss": 1.0}

    def start(self, batch: Any) -> Any:
        return None

    def preview(self, step: int) -> None:
        return None


def step_of(size: float, scaling: LossScaling | None) -> tuple[Half, Any]:
    model = Half(size)
    optimizer = Optimizer(model, OptimizerConfig(name="sgd", clip_norm=0.0))
    result, _ = train_step(
        model, HalfObjective(model), optimizer, [BATCH], [None], lr=0.25, seed=(0,), scaling=scaling
    )
    return model, result


@pytest.mark.parametrize(("size", "factor"), [(0.5, 2.0**15), (10.0, 2.0**12), (60000.0, 1.0)])
def test_an_overflow_is_repeated_with_half_the_factor(size: float, factor: float) -> None:
    scaling = LossScaling()
    model, result = step_of(size, scaling)
    assert (scaling.factor, scaling.steps) == (factor, 1)
    assert result.first_nonfinite is None
    assert float(model.weight.detach()) == 0.5 - 0.25 * float(torch.tensor(size).half())
    assert result.gradient_norm == float(torch.tensor(size).half())
    assert float(model.calls) == 1, "the buffers are those of a single pass"


def test_small_gradients_survive() -> None:
    """A gradient of 2e-9 is zero in float16."""

    def gradient(scaling: LossScaling | None) -> float:
        return float(step_of(2e-9, scaling)[1].gradient_norm)

    assert gradient(None) == 0.0
    scaled = Half(1.0)
    (scaled() * 2e-9 * LossScaling().factor).backward()
    assert scaled.weight.grad is not None
    assert float(scaled.weight.grad) / LossScaling().factor == pytest.approx(2e-9, rel=1e-3)


def test_a_gradient_that_is_never_finite_is_refused() -> None:
    scaling = LossScaling()
    model, result = step_of(float("nan"), scaling)
    assert (result.first_nonfinite, float(model.weight.detach()), scaling.factor) == (
        "model (Half)",
        0.5,
        2.0**16,
    )
    model, result = step_of(1e5, scaling)  # infinite in float16
    assert result.first_nonfinite is not None
    assert float(model.weight.detach()) == 0.5


def test_the_factor_grows_after_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_scaling, "STEPS_UNTIL_GROWTH", 3)
    scaling, factors = LossScaling(), []
    for _ in range(28):
        scaling.count_step()
        factors.append(scaling.factor)
    assert factors[:7] == [2.0**16] * 2 + [2.0**17] * 3 + [2.0**18] * 2
    assert factors[-1] == 2.0**24
    assert scaling.shrink()
    assert (scaling.factor, scaling.steps) == (2.0**23, 0)


def float16_config(precision: str) -> Any:
    return toy_config(
        training={"checkpoint_seconds": 1e-9, "budget": "6steps", "precision": precision, "ema_decay": 0.0}
    )


def test_a_power_of_two_changes_no_bit(tmp_path: Path) -> None:
    plain = fingerprint(train(tmp_path / "plain", float16_config("float32")))
    scaled = fingerprint(train(tmp_path / "scaled", float16_config("float16")))
    assert differences(plain, scaled) == ["state"], "only the factor, and the fingerprint of the run"


def test_the_factor_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with growing factors, killed after four steps, ends in the same state."""
    monkeypatch.setattr(loss_scaling, "STEPS_UNTIL_GROWTH", 2)
    whole = fingerprint(train(tmp_path / "whole", float16_config("float16")))
    assert whole["state"]["loss_scaling"] == {"factor": 2.0**19, "steps": 0}

    def stop(where: str, calls: int) -> None:
        if where == "train" and calls == 4:
            raise KeyboardInterrupt

    path = tmp_path / "killed"
    with pytest.raises(KeyboardInterrupt):
        train(path, float16_config("float16"), hook=stop)
    assert differences(fingerprint(train(path)), whole) == []


def test_a_checkpoint_without_its_factor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(path, float16_config("float16"))
    for state_file in path.glob("checkpoints/*/state.json"):
        state = open_json(state_file.read_bytes(), "")
        del state["loss_scaling"]
        content = seal_json(state)
        state_file.write_bytes(content)
        manifest_file = state_file.with_name("manifest.json")
        manifest = open_json(manifest_file.read_bytes(), "")
        manifest["files"]["state.json"] = {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        manifest_file.write_bytes(seal_json(manifest))
    with pytest.raises(UserError, match=r"loss_scaling does not match training\.precision"):
        train(path)


def test_a_cpu_refuses_to_train_in_float16() -> None:
    with pytest.raises(UserError, match=r"training\.precision=float16 is for GPUs; a CPU is slow at it"):
        resolve_precision("float16", CPU)
    assert resolve_precision("float16", torch.device("cuda")) == "float16"
