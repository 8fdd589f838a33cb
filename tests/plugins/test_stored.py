"""The plugins that a run keeps: which code is executed, and what is refused."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.layers.mixers.registry import MIXERS
from foveal.plugins.loading import load_plugin, loaded_plugin
from foveal.plugins.options import trusting
from foveal.plugins.source import read_source
from foveal.plugins.stored import open_plugins
from tests.support.plugin_files import CELL, install, write_cell, write_package

pytestmark = pytest.mark.usefixtures("own_registries")


def stored(run: Path, plugin: Path, *modules: str) -> dict[str, Any]:
    """Write the files of a run with a plugin, and return the run's manifest."""
    source = read_source(plugin)
    for name, content in source.stored_files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(content)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in source.stored_files.items()}
    return {"files": {"config.toml": "0", **hashes}, "plugins": {source.name: [*modules]} if modules else {}}


@pytest.fixture
def lines() -> list[str]:
    return []


def test_code_is_executed_only_if_it_is_trusted(tmp_path: Path, lines: list[str]) -> None:
    manifest = stored(tmp_path / "run", write_cell(tmp_path / "mine.py"))
    with pytest.raises(UserError) as refused:
        open_plugins(tmp_path / "run", manifest, lines.append)
    assert str(refused.value) == (
        f"{tmp_path}/run: was made with the plugin mine: read its code in {tmp_path}/run/plugins/mine.py, "
        "and give --trust-plugin to run it (in Python: foveal.load(..., trust_plugin=True))"
    )
    assert "tanh-cell" not in MIXERS
    with trusting(True):
        open_plugins(tmp_path / "run", manifest, lines.append)
    plugin = loaded_plugin("mine")
    assert plugin is not None
    assert (plugin.origin, plugin.path) == ("run", tmp_path / "run/plugins/mine.py")
    assert "tanh-cell" in MIXERS
    open_plugins(tmp_path / "run", manifest, lines.append)  # it was loaded in this process
    assert lines == []


def test_a_package_comes_with_its_modules(tmp_path: Path, lines: list[str]) -> None:
    package = write_package(tmp_path / "my_cells", inner=CELL.format(name="inner-cell"))
    manifest = stored(tmp_path / "run", package, "my_cells.inner", "os.path")
    open_plugins(tmp_path / "run", manifest, lines.append, trust=True)
    assert "inner-cell" in MIXERS
    assert not [*(tmp_path / "run").rglob("*.pyc")]


def test_the_same_code_elsewhere_needs_no_trust(tmp_path: Path, lines: list[str]) -> None:
    manifest = stored(tmp_path / "run", write_cell(tmp_path / "mine.py"))
    load_plugin(write_cell(tmp_path / "copy/mine.py"))
    open_plugins(tmp_path / "run", manifest, lines.append)
    assert lines == []


def test_a_file_that_the_user_names_is_used_though_it_has_changed(tmp_path: Path, lines: list[str]) -> None:
    manifest = stored(tmp_path / "run", write_cell(tmp_path / "mine.py"))
    plugin = load_plugin(write_cell(tmp_path / "mine.py", "new-cell"))
    open_plugins(tmp_path / "run", manifest, lines.append, trust=True)
    assert loaded_plugin("mine") == plugin
    (line,) = lines
    assert "mine.py: not the code that" in line
    assert "run/plugins/mine.py; results may differ" in line


def test_an_installed_plugin_is_used_if_it_is_the_same(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = write_cell(tmp_path / "installed_mine.py")
    manifest = stored(tmp_path / "run", path)
    install(monkeypatch, "installed_mine")
    open_plugins(tmp_path / "run", manifest, lines.append)
    plugin = loaded_plugin("installed_mine")
    assert plugin is not None
    assert (plugin.origin, plugin.path) == ("installed", path)


def test_another_version_that_is_installed_is_not_used(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = write_cell(tmp_path / "installed_mine.py")
    manifest = stored(tmp_path / "run", path)
    write_cell(path, "new-cell")
    install(monkeypatch, "installed_mine")
    assert "new-cell" in MIXERS
    with pytest.raises(
        UserError, match=r"the plugin installed_mine \(.*/installed_mine\.py has another content\)"
    ):
        open_plugins(tmp_path / "run", manifest, lines.append)
    open_plugins(tmp_path / "run", manifest, lines.append, trust=True)
    assert "tanh-cell" in MIXERS
    assert "new-cell" not in MIXERS


def test_an_edited_source_is_not_executed(tmp_path: Path, lines: list[str]) -> None:
    manifest = stored(tmp_path / "run", write_cell(tmp_path / "mine.py"))
    write_cell(tmp_path / "run/plugins/mine.py", "evil-cell")
    with pytest.raises(UserError, match=r"plugins/mine\.py: edited since the run was created"):
        open_plugins(tmp_path / "run", manifest, lines.append, trust=True)
    assert "evil-cell" not in MIXERS
