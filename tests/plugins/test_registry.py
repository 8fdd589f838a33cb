"""Registries of parts by name."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from foveal.plugins.registry import REGISTRIES, Registry

SLOW_MODULE = """
import time
from foveal.plugins.registry import REGISTRIES

time.sleep(0.2)
REGISTRIES["shape"].add("square", object(), module="foveal.shapes")
"""


def test_threads_wait_for_the_import_of_our_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_shapes.py").write_text(SLOW_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(REGISTRIES, "shape", Registry("shape"))
    registry: Registry[object] = Registry("shape", lambda: ["slow_shapes"])
    start = Barrier(2)

    def look_up() -> bool:
        start.wait()
        return "square" in registry

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(look_up) for _ in range(2)]
    assert [answer.result() for answer in answers] == [True, True]
