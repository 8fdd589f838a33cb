"""The notebooks of examples: they are listed, have outputs of no particular machine, and run."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill import own_cache

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_every_notebook_is_listed() -> None:
    assert len(NOTEBOOKS) == 8
    page, navigation = (
        (ROOT / "docs/notebooks.md").read_text("utf-8"),
        (ROOT / "mkdocs.yml").read_text("utf-8"),
    )
    assert re.findall(r"notebooks/(\w+)\.ipynb", page) == [path.stem for path in NOTEBOOKS]
    assert re.findall(r"notebooks/(\w+)\.md", navigation) == [path.stem for path in NOTEBOOKS]


@every_notebook
def test_outputs_are_those_of_a_whole_run_without_errors(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}


@every_notebook
def test_no_path_of_a_machine(path: Path) -> None:
    text = "".join(json.dumps([cell["source"], cell["outputs"]]) for cell in code_cells(path))
    without_pictures = re.sub(r'"image/\w+": "[^"]*"', "", text)
    assert not re.search(r"/(home|root|tmp|work|Users)/", without_pictures)


@pytest.mark.slow
@every_notebook
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
