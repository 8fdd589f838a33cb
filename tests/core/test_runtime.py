"""Precision: what `auto` means is the machine's to say, and is decided once a run."""

import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.runtime import autocast, exact_dtype, has_fast_bfloat16, resolve_device
from foveal.tasks.config import load_config
from foveal.tasks.session import resolve_config

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("found", "fast"),
    [
        ({"architecture": "x86_64", "avx512_bf16": True}, True),
        ({"architecture": "x86_64", "avx512_bf16": False, "amx_bf16": False}, False),
        ({"architecture": "aarch64", "bf16": True}, True),
        ({}, False),
    ],
)
def test_auto_asks_the_machine(monkeypatch: pytest.MonkeyPatch, found: dict[str, object], fast: bool):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert has_fast_bfloat16(CPU) is fast
    config = resolve_config(load_config("attention"), CPU)
    assert config.training.precision == ("bfloat16" if fast else "float32")
    with autocast(CPU, "auto"):
        assert torch.is_autocast_enabled("cpu") is fast


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_was_asked_for_is_kept(precision: str):
    config = load_config("attention", [f"training.precision={precision}"])
    assert resolve_config(config, CPU) == config


def test_the_capabilities_are_known_by_these_names():
    """A new torch that names them otherwise would quietly turn bfloat16 off."""
    found = torch.cpu.get_capabilities()
    assert {"avx512_bf16", "bf16"} & found.keys()


def test_a_run_in_float16_is_used_in_float32_on_a_cpu():
    with autocast(CPU, "float16"):
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tpu", "--device tpu: not a device; use cpu, cuda, cuda:0 or mps"),
        ("meta", "--device meta: models run on cpu, cuda or mps; use one of them"),
        ("mps", "--device mps: this machine's PyTorch sees no Apple GPU; use --device cpu"),
    ],
)
def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch, name: str, message: str):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UserError) as refusal:
        resolve_device(name)
    assert str(refusal.value) == message


def test_an_apple_gpu(monkeypatch: pytest.MonkeyPatch):
    """Its numbers have at most 32 bits, and `auto` does not take it."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    device = resolve_device("mps")
    assert (device.type, exact_dtype(device), exact_dtype(CPU)) == ("mps", torch.float32, torch.float64)
    assert not has_fast_bfloat16(device)
    assert resolve_device("auto").type != "mps"
