"""On a CUDA device: mixers compute what they compute on a CPU, and runs train, resume and open there.

Skipped where PyTorch sees no CUDA device.
"""

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import foveal
from foveal.core.memory import Memory
from foveal.laws.module_states import run_module
from foveal.laws.trial import B, T
from tests.support.command_line import TINY_MODEL, predictions, run_command, succeed
from tests.support.interrupted_command import act_at
from tests.support.mixer_rows import EVERY, READING, ROWS, D, make_row_module, memory_of
from tests.support.small_texts import sentences, write_labels

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")

LANGUAGE_MODELS = ("rnn", "lstm", "gru", "attention", "mamba", "s5", "rwkv", "moe", "conv")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(sentences(200)), encoding="utf-8")
    return tmp_path


@pytest.fixture(autouse=True)
def full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute products of float32 without TF32, which cuDNN takes by default."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def outputs_on(device: str, name: str) -> list[Tensor]:
    """Return the outputs of a mixer, their gradient to the inputs, and those to the parameters."""
    module = make_row_module(name, torch.float32).to(device)
    memory = memory_of(name, torch.float32)
    torch.manual_seed(1)
    x = torch.randn(B, T, D).to(device).requires_grad_()
    state: Any = None
    if memory is not None:
        reader: Any = module
        vectors = memory.vectors.detach().masked_fill(~memory.mask[:, :, None], 0)
        parts = [part[:B].to(device) for part in (vectors, memory.mask, memory.summary)]
        state = reader.init_state(B, None, Memory(parts[0], parts[1], parts[2]))
    y, _ = run_module(module, x, state)
    weights = torch.linspace(-1, 1, y.numel()).view(y.shape).to(device)
    inputs = [x, *module.parameters()]
    gradients = torch.autograd.grad((y * weights).sum(), inputs, allow_unused=True)
    return [part.detach().cpu() for part in (y, *gradients) if part is not None]


@pytest.mark.parametrize("name", [name for name in EVERY if name in ROWS or name in READING])
def test_a_mixer_computes_what_it_computes_on_a_cpu(name: str) -> None:
    for here, there in zip(outputs_on("cuda", name), outputs_on("cpu", name), strict=True):
        torch.testing.assert_close(here, there, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("model", LANGUAGE_MODELS)
def test_a_language_model_learns(model: str, precision: str) -> None:
    run = foveal.train(
        "text.txt",
        model=model,
        budget="20steps",
        run="run",
        device="cuda",
        settings=dict(setting.split("=") for setting in TINY_MODEL) | {"training.precision": precision},
        quiet=True,
    )
    losses = [row["loss"] for row in run.metrics if row["kind"] == "step"]
    assert losses[-1] < losses[0]
    assert next(run.model.parameters()).is_cuda
    assert run.generate("the ", tokens=5).texts


@pytest.mark.parametrize("model", LANGUAGE_MODELS)
def test_an_interrupted_run_ends_like_one_that_was_not(model: str) -> None:
    train = ("train", "text.txt", "--model", model, "--device", "cuda", *TINY_MODEL, "--budget", "12steps")
    succeed(*train, "--run", "whole")
    with act_at("after a sample", interrupt):
        assert run_command(*train, "--run", "parts").code == 130
    succeed("resume", "parts")
    assert weights_of("parts") == weights_of("whole")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def weights_of(run: str) -> str:
    return hashlib.sha256(Path(run, "model.safetensors").read_bytes()).hexdigest()


def test_a_run_opens_on_either_device() -> None:
    write_labels()
    succeed("train", "labels.csv", "--budget", "3steps", "--run", "run", "--device", "cuda")
    here, there = (predictions("run", "labels.csv", "--device", device) for device in ("cuda", "cpu"))
    assert [row["output"] for row in here] == [row["output"] for row in there]


def test_a_module_of_ones_own_trains_on_the_device() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    batches = [(part, part.sum(1, keepdim=True)) for part in x.split(16)]

    def objective(module: nn.Module, batch: Any) -> Tensor:
        return (module(batch[0]) - batch[1]).square().mean()

    result = foveal.Trainer(
        nn.Linear(4, 1), objective, batches, batches, budget="50steps", run="run", device="cuda", lr=0.05
    ).run()
    assert result is not None
