"""Plugins of installed packages are found by their entry points, when a name is not among ours."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foveal.core import log
from foveal.layers.mixers.registry import MIXERS
from foveal.plugins.loading import load_plugin, loaded_plugin
from tests.support.plugin_files import CELL, install, write_cell, write_package

pytestmark = pytest.mark.usefixtures("own_registries")


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Modules of `tmp_path` can be imported; these are the lines that the user is told."""
    monkeypatch.syspath_prepend(tmp_path)
    shown: list[str] = []
    monkeypatch.setattr(log, "_listeners", [shown.append])
    before = {*sys.modules}
    yield shown
    for name in {*sys.modules} - before:
        if name.startswith("installed_"):
            del sys.modules[name]


def test_only_what_is_not_ours_imports_it(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package(tmp_path / "installed_cells", parts=CELL.format(name="installed-cell"))
    install(monkeypatch, "installed_cells.parts")
    assert "lstm" in MIXERS
    assert "installed_cells" not in sys.modules
    assert "installed-cell" in MIXERS
    plugin = loaded_plugin("installed_cells")
    assert plugin is not None
    assert (plugin.origin, plugin.module) == ("installed", "installed_cells.parts")
    assert [*plugin.source.files] == ["installed_cells/__init__.py", "installed_cells/parts.py"]
    assert lines == []


def test_one_that_fails_is_told_once_and_the_others_go_on(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cell(tmp_path / "installed_bad.py", "bad-cell", more="import nope")
    write_cell(tmp_path / "installed_clash.py", "lstm")
    write_cell(tmp_path / "installed_good.py", "good-cell")
    install(monkeypatch, "installed_bad", "installed_clash", "installed_gone", "installed_good")
    for _ in range(2):
        assert "good-cell" in [*MIXERS]
    assert "bad-cell" not in MIXERS
    bad, clash, gone = lines
    assert bad.startswith("the installed plugin installed_bad-entry is left out: ")
    assert "installed_bad.py:" in bad
    assert bad.endswith("the plugin fails on import: ModuleNotFoundError: No module named 'nope'")
    assert clash.endswith("installed_clash.py: the mixer lstm is one of Foveal's own; choose another name")
    assert gone.endswith("there is no module installed_gone; install its package again")


def test_a_file_that_the_user_names_goes_first(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cell(tmp_path / "installed_cell.py", "old-cell")
    install(monkeypatch, "installed_cell")
    load_plugin(write_cell(tmp_path / "work/installed_cell.py", "new-cell"))
    assert "new-cell" in MIXERS
    assert "old-cell" not in MIXERS
