"""Plugins of files and of packages: what they register, and why one can't be loaded, in one line."""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.layers.mixers.registry import MIXERS, MixerPlace
from foveal.plugins.loading import load_plugin, loaded_plugins, plugin_of
from tests.support.plugin_files import CELL, write_cell, write_package
from tests.support.wrong_mixers import HEADER

pytestmark = pytest.mark.usefixtures("own_registries")


def test_a_file_registers_its_parts(tmp_path: Path) -> None:
    plugin = load_plugin(write_cell(tmp_path / "random.py"))
    assert plugin.parts == {"mixer": ["tanh-cell"]}
    assert "tanh-cell" in MIXERS
    spec = MIXERS["tanh-cell"]
    assert (spec.section, spec.Settings().model_dump()) == ("tanh_cell", {"scale": 1.0})
    assert spec.make(MixerPlace(spec.Settings(), 3, 4)).d_out == 4
    assert "random" not in plugin.module.split(".")  # the file shadows no module of Python
    assert load_plugin(tmp_path / "random.py") is plugin


def test_an_edited_file_takes_the_place_of_its_parts(tmp_path: Path) -> None:
    first = load_plugin(write_cell(tmp_path / "mine.py"))
    second = load_plugin(write_cell(tmp_path / "mine.py", "other"))
    assert "other" in MIXERS
    assert "tanh-cell" not in MIXERS
    assert [plugin for plugin in loaded_plugins() if plugin.name == "mine"] == [second]
    assert first.source.digest != second.source.digest


def test_a_package_imports_its_modules(tmp_path: Path) -> None:
    folder = write_package(
        tmp_path / "my_cells",
        init="from .inner import Cell\nfrom my_cells import inner\nassert inner.Cell is Cell",
        inner=CELL.format(name="inner-cell"),
    )
    (folder / "notes.txt").write_text("kept")
    (folder / ".hidden").write_text("not kept")
    (folder / "large.bin").write_bytes(bytes(1 << 20))
    plugin = load_plugin(folder)
    assert plugin.parts == {"mixer": ["inner-cell"]}
    names = ["my_cells/__init__.py", "my_cells/inner.py", "my_cells/notes.txt"]
    assert [*plugin.source.files] == names
    assert not [*folder.rglob("*.pyc")]
    assert plugin_of("my_cells.inner") == plugin
    assert plugin_of("foveal.cli") is None


def test_only_the_source_that_was_read_is_executed(tmp_path: Path) -> None:
    """A stale `.pyc`, whose content no hash covers, is not."""
    folder = write_package(tmp_path / "my_cells", init="from my_cells import inner", inner="value = 1")
    (tmp_path / "evil.py").write_text("value = 2")
    py_compile.compile(
        str(tmp_path / "evil.py"),
        cache_from_source(folder / "inner.py"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,  # Python believes it
    )
    load_plugin(folder)
    assert sys.modules["my_cells.inner"].value == 1
    with pytest.raises(ModuleNotFoundError, match=r"my_cells\.more"):
        __import__("my_cells.more")


FAULTS = {
    "import foveal\n\n@foveal.register_mixer\nclass Cell: pass": r"Cell: a mixer needs a name: @foveal\.reg",
    "import nope": r"mine\.py:1: the plugin fails on import: ModuleNotFoundError: No module named 'nope'$",
    "import beside": r"a plugin of several files, such as beside\.py, is a package: a folder with __init__",
    "\ndef f(:": r"mine\.py:2: not Python: invalid syntax",
    "\n\n1 / 0": r"mine\.py:3: the plugin fails on import: ZeroDivisionError: division by zero",
    "raise SystemExit(3)": r"mine\.py:1: .*: it ends the program \(sys\.exit\); put what only a script",
    CELL.format(name="lstm"): r"mine\.py: the mixer lstm is one of Foveal's own; choose another name",
    CELL.format(name="a,b"): r"mine\.py: the mixer 'a,b': a name has letters, digits, - and _ only",
    CELL.format(name="embedding-width"): r"the mixer embedding-width: its settings would be those of another",
    CELL.format(name="a") + CELL.format(name="a").replace("Cell(", "Other("): r"registers the mixer a twice",
    CELL.format(name="a").replace("project", "projekt"): r"mine\.py: Cell: lacks project",
    CELL.format(name="a").replace(
        ": float = 1.0", ""
    ): r"Cell: the argument scale is a setting, which needs a type",
    CELL.format(name="a").replace("scale: float = 1.0", "**scale"): r"Cell: \*\*scale can be no setting",
    CELL.format(name="a").replace(
        "d_in, width, scale", "*, scale"
    ): r"its first arguments must be \(d_in, width\)",
}


@pytest.mark.parametrize("text", FAULTS, ids=range(len(FAULTS)))
@pytest.mark.usefixtures("types_unchecked")
def test_a_plugin_that_cannot_be_loaded_is_one_line(text: str, tmp_path: Path) -> None:
    """No part of it stays."""
    (tmp_path / "beside.py").touch()
    (tmp_path / "mine.py").write_text(text)
    before = [*MIXERS]
    with pytest.raises(UserError, match=FAULTS[text]) as refused:
        load_plugin(tmp_path / "mine.py")
    assert "\n" not in str(refused.value)
    assert [*MIXERS] == before
    assert "mine" not in [plugin.name for plugin in loaded_plugins()]


RETURNS = {
    "x": r"mine\.py: Wrong: a call must return \(outputs, state\) with .*\(1, 2, 4\) .*, not Tensor \(docs",
    "x, None, None": r"not \(Tensor, NoneType, NoneType\) \(docs",
    "x[..., :3], None": r"not outputs \(1, 2, 3\) of torch\.float32 \(docs",
    "x.long(), None": r"not outputs \(1, 2, 4\) of torch\.int64 \(docs",
    "x, {'h': 'text'}": r"not a state with str in place of tensors \(docs",
}


@pytest.mark.parametrize("returned", RETURNS)
def test_a_mixer_with_other_results_is_one_line(returned: str, tmp_path: Path) -> None:
    text = f"""
{HEADER}
@foveal.register_mixer("wrong")
class Wrong(Base):
    def forward(self, x, state=None, *, lengths=None):
        return {returned}
"""
    (tmp_path / "mine.py").write_text(text)
    load_plugin(tmp_path / "mine.py")
    spec = MIXERS["wrong"]
    with pytest.raises(UserError, match=RETURNS[returned]):
        spec.make(MixerPlace(spec.Settings(), 4, 4))


def test_names_that_two_plugins_have(tmp_path: Path) -> None:
    load_plugin(write_cell(tmp_path / "mine.py"))
    with pytest.raises(
        UserError, match=r"two plugins register the mixer tanh-cell: .*mine\.py and .*other\.py; rename"
    ):
        load_plugin(write_cell(tmp_path / "other.py"))
    with pytest.raises(
        UserError, match=r"two plugins are named mine: .*mine\.py and .*/more/mine\.py; rename"
    ):
        load_plugin(write_cell(tmp_path / "more/mine.py", "more"))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("nope.py", "no such file"),
        ("text.txt", r"a plugin is a Python file \(\.py\), or the folder of a package"),
        ("folder", "a folder without __init__.py is no package"),
        ("my cell.py", "name the file of a plugin with letters"),
        ("json", "there is another module json; rename the folder"),
    ],
)
def test_paths_of_no_plugin(path: str, line: str, tmp_path: Path) -> None:
    for name in ("text.txt", "my cell.py"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    write_package(tmp_path / "json")
    with pytest.raises(UserError, match=line):
        load_plugin(tmp_path / path)


def test_modules_of_the_users_own_program_are_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    write_package(tmp_path / "imported_cells", inner=CELL.format(name="imported-cell"))
    try:
        __import__("imported_cells.inner")
        plugin = plugin_of(MIXERS.module_of("imported-cell"))
        assert plugin is not None
        assert (plugin.name, plugin.origin) == ("imported_cells", "imported")
        assert [*plugin.source.files] == ["imported_cells/__init__.py", "imported_cells/inner.py"]
    finally:
        for name in ("imported_cells", "imported_cells.inner"):
            del sys.modules[name]
    assert plugin_of("no module of a file") is None
