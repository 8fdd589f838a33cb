"""The wheel and the sdist: complete, accepted by `twine check`, and what is installed from them runs."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from benchmarks.kill import story

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow
TRAIN = "import sys, foveal; run = foveal.train(sys.argv[1], model='gru', budget='1steps', run='first'); "


def run(*command: str | Path, folder: Path) -> str:
    """Run a command that has to succeed, without this checkout on Python's path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The sdist, and the wheel that is built from it."""
    pytest.importorskip("build")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT / "foveal", source / "foveal", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source, folder=out)
    return sorted(out.iterdir(), key=lambda path: path.suffix)


def test_the_wheel_is_complete(files: list[Path]) -> None:
    sdist, wheel = files
    assert (sdist.name[-7:], wheel.name[-4:]) == (".tar.gz", ".whl")
    own = {path.relative_to(ROOT).as_posix() for path in (ROOT / "foveal").rglob("*") if path.is_file()}
    own = {name for name in own if "__pycache__" not in name}
    assert {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("foveal/")} == own
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= own | {"pyproject.toml", "README.md", "LICENSE"}
    assert not [name for name in names if name.startswith(("tests", "build"))]


def test_twine_accepts_both(files: list[Path]) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *files, folder=files[0].parent)


@pytest.mark.parametrize("number", [0, 1], ids=["sdist", "wheel"])
def test_what_is_installed_runs(files: list[Path], number: int, tmp_path: Path) -> None:
    """In an environment of its own, which has the packages of this one."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip()
    others = [path for path in sys.path if path.endswith("site-packages")]
    (Path(own) / "others.pth").write_text("\n".join(others))
    install = ("install", "--quiet", "--no-deps", "--no-build-isolation", "--force-reinstall")
    run(python, "-m", "pip", *install, files[number], folder=tmp_path)
    where = run(python, "-c", "import foveal; print(foveal.__file__)", folder=tmp_path)
    assert where.startswith(own)
    (tmp_path / "notes.txt").write_text(story())
    run(python, "-c", TRAIN + "print(run.generate('the', tokens=5))", "notes.txt", folder=tmp_path)
    assert "gru" in run(python.parent / "foveal", "models", folder=tmp_path)
