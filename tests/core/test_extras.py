"""A missing package of an extra is asked for by one line, through one function."""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foveal
from foveal.api.results.answer_table import check_answer_file
from foveal.api.results.table import Table
from foveal.core.errors import UserError
from foveal.core.extras import EXTRAS, project_name, require
from foveal.data.datasets.printed_words import printed_words
from foveal.data.files.parquet import parquet_columns

LOGGING = ("mlflow", "tensorboard", "trackio", "wandb")
"""Packages of loggers, of which a user has one at most."""
PACKAGE = Path(foveal.__file__).parent
PROJECT = PACKAGE.parent / "pyproject.toml"


def test_every_extra_installs_its_package() -> None:
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(requirement.startswith(project_name(package)) for requirement in extras[extra])
        assert package in LOGGING or extra in extras["all"][0]
    assert extras["test"][0].startswith("foveal[all")


def test_files_that_import_them_ask_first() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        for package in EXTRAS:
            if re.search(rf"^    import {package}\b", text, re.MULTILINE):
                assert f'require("{package}"' in text, f"{path}: {package}"
            if re.search(rf"^(import|from) {package}\b", text, re.MULTILINE):
                assert asks_first(path.parent, package), path


def asks_first(folder: Path, package: str) -> bool:
    """Return whether a package is asked for when a folder is imported, or by the command that imports it."""
    if folder == PACKAGE / "api/page":  # imported by one command, which prints its address before
        command = (PACKAGE / "commands/inspect_page.py").read_text("utf-8")
        return bool(re.search(rf'for package in .*"{package}".*:\n +check_installed\(package', command))
    return f'\nrequire("{package}"' in (folder / "__init__.py").read_text("utf-8")


def log_nothing(line: str) -> None:
    pass


USES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "a table": ("pyarrow", lambda path: parquet_columns(path / "a.parquet")),
    "answers": ("pyarrow", lambda path: check_answer_file(path / "a.parquet", None, False)),
    "printed words": ("pyarrow", lambda path: next(printed_words(log_nothing))),
    "pandas": ("pandas", lambda path: Table([{"a": 1}]).to_pandas()),
    "video": ("av", lambda path: require("av", "film.mp4: a video")),
}


@pytest.mark.parametrize("use", USES)
def test_one_line_says_what_to_install(use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, call = USES[use]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        UserError, match=rf"needs the package {package}: pip install 'foveal\[{EXTRAS[package]}\]'$"
    ):
        call(tmp_path)
