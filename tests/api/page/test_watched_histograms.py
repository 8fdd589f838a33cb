"""The page of a run that trains: histograms appear by themselves, show the log, and go on with it."""

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("uvicorn", reason="the extra page is not installed")

from foveal.api.page.listener import Listener
from foveal.api.page.page_state import Start
from foveal.api.page.serve import PageServer
from foveal.api.page.shown_runs import ShownRuns
from foveal.inspection.histograms.bins import BINS, OUTPUT_BINS
from foveal.store.run import open_run, run_lock
from tests.support.browser import announced, as_announced, press, watched_page
from tests.support.labeled_images import train, write_images

pytestmark = pytest.mark.slow


@contextmanager
def held_back(run: Path) -> Iterator[Callable[[int], None]]:
    """Hold a run as a training does, with an empty log of statistics. The function writes its first lines."""
    log, metrics = run / "statistics.jsonl", run / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("")

    def write(count: int) -> None:
        log.write_text("".join(lines[:count]))
        metrics.touch()

    with run_lock(open_run(run)):
        yield write


def shares(run: Path, line: int) -> dict[str, str]:
    """Return the percentage of the first layer's outputs in each bin above zero, in a line of the log, as the
    page writes it."""
    layer = json.loads((run / "statistics.jsonl").read_text().splitlines()[line])["layers"][0]
    total = sum(layer["counts"]) + layer["zeros"]
    edges = [*OUTPUT_BINS.edges(), math.inf][BINS // 2 - 1 :]
    names = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    counts = layer["counts"][BINS // 2 :]
    return {name: as_announced(100 * count / total) for name, count in zip(names, counts, strict=True)}


def announced_shares(page: Any, step: str) -> dict[str, str]:
    """Return what the page says of the largest bins at the last step."""
    first = "foveal-heatmap >> nth=0"
    page.locator(first).locator(".map").focus()
    press(page, "End")
    says = "() => document.querySelector('foveal-heatmap [role=status]')?.textContent"
    page.wait_for_function(says, timeout=30_000)
    said = {}
    for _ in range(4):
        sentence = announced(page, first)
        found = re.match(r"value '(.*)', step '(.*)': (.*) % of values", sentence)
        assert found is not None, sentence
        assert found[2] == step
        said[found[1]] = found[3]
        press(page, "ArrowDown")
    return said


def test_histograms_appear_and_go_on(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path / "cache"))
    train(write_images(), "--model", "mlp", run="run", steps=30)
    run = tmp_path / "run"
    server = PageServer(Listener(), ShownRuns([run]), Start(view="curves"), "cpu")
    try:
        with held_back(run) as write, watched_page(browser) as page:
            page.goto(server.address)
            page.wait_for_selector(".payload", timeout=60_000)
            button = "button.view[data-view=histograms]"
            assert page.locator(button).count() == 0
            write(2)
            page.wait_for_selector(button, timeout=30_000)
            assert page.locator("button.view[aria-current=true]").inner_text() == "curves"
            page.locator(button).click()
            page.locator("summary", has_text="Choose").click()
            page.locator("#option-layer").fill("1")
            page.get_by_role("button", name="Show").click()
            page.wait_for_selector("foveal-heatmap .map")
            before = announced_shares(page, "10")
            assert before.items() <= shares(run, 1).items()
            write(3)
            page.wait_for_function(
                "() => document.querySelector('.payload-title')?.textContent.includes('over 30 steps')",
                timeout=30_000,
            )
            after = announced_shares(page, "30")
            assert after.items() <= shares(run, 2).items()
            assert len({*before.values(), *after.values()}) > 2, "the numbers change as the run trains"
    finally:
        server.close()
