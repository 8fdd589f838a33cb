"""Where kernels come from, and that they behave the same wherever they run."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from foveal.ops.jit import launch
from foveal.ops.jit.code_cache import _read_cached
from foveal.ops.jit.launch import Kernel
from foveal.store.cache import cache_folder
from tests.support.linear_kernel import kernel_product

x, W = torch.randn(3, 48), torch.randn(37, 48)
PROGRAM = """
import torch
from tests.support.linear_kernel import kernel_product
torch.manual_seed(0)
x, W = torch.randn(3, 48), torch.randn(37, 48)
print(torch.allclose(kernel_product(x, W), x @ W.T, atol=1e-5))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and nothing remembered from another one."""
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path))
    launch._address.cache_clear()
    yield tmp_path / "kernels"
    launch._address.cache_clear()


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def elsewhere(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True
    )


def test_threads_share_the_work(two_threads):
    expected = kernel_product(x, W)
    torch.set_num_threads(1)
    assert torch.equal(kernel_product(x, W), expected)
    torch.testing.assert_close(expected, x @ W.T)


def test_it_runs_on_torchs_own_threads():
    """On Linux with torch's OpenMP; elsewhere a kernel runs on the calling thread."""
    if sys.platform == "linux":
        assert launch._openmp_parallel() is not None


def test_several_threads_of_the_program_call_at_once(two_threads):
    expected = kernel_product(x, W)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: kernel_product(x, W), range(40)))
    assert all(torch.equal(result, expected) for result in results)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes(two_threads, method):
    """A forked child has none of the parent's threads, and must not wait for them."""
    expected = kernel_product(x, W)
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.starmap_async(kernel_product, [(x, W)] * 4).get(timeout=60)
    assert all(torch.equal(result, expected) for result in results)


def test_the_code_is_kept(cache, monkeypatch):
    first = kernel_product(x, W)
    (kept,) = cache.iterdir()
    launch._address.cache_clear()
    monkeypatch.setattr("foveal.ops.jit.code_cache._compile", lambda *_: pytest.fail("made again"))
    assert torch.equal(kernel_product(x, W), first)
    assert kept.name.startswith("linear-forward-")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_code_is_made_again(cache, damage):
    first = kernel_product(x, W)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    middle = len(whole) // 2
    changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    kept.write_bytes({"cut": whole[:middle], "changed": changed, "empty": b""}[damage])
    launch._address.cache_clear()
    assert torch.equal(kernel_product(x, W), first)
    assert _read_cached(kept) is not None


@pytest.mark.slow
def test_several_processes_fill_one_cache(cache):
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: elsewhere(), range(3)))
    assert [(run.stdout, run.stderr) for run in done] == [("True\n", "")] * 3
    assert len(list(cache.iterdir())) == 1


@pytest.mark.slow
def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert elsewhere(FOVEAL_CACHE=str(tmp_path / "file")).stdout == "True\n"


def test_without_kernels(monkeypatch):
    """Switched off, or where Numba is not installed: not usable, and no word about it."""
    for change in (
        lambda: monkeypatch.setenv("FOVEAL_KERNELS", "off"),
        lambda: monkeypatch.setattr(launch, "find_spec", lambda name: None),
    ):
        with monkeypatch.context():
            launch._address.cache_clear()
            change()
            assert not Kernel("linear", "forward").usable(x, W)
        monkeypatch.undo()
    launch._address.cache_clear()


def test_a_kernel_that_cannot_be_made_is_said_once(cache, monkeypatch):
    monkeypatch.setattr("foveal.ops.jit.code_cache._compile", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.warns(RuntimeWarning, match=r"linear.forward .*OSError: no"):
        assert not Kernel("linear", "forward").usable(x)
    assert not Kernel("linear", "forward").usable(x)


def test_what_a_kernel_is_for():
    kernel = Kernel("linear", "forward")
    assert kernel.usable(x, W)
    assert not kernel.usable(x.double())
    assert not kernel.usable(x, W.to(torch.bfloat16))
    assert not kernel.usable(x.to("meta"))
    assert cache_folder()
