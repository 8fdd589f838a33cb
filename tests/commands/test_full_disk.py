"""Every command that writes, on a full disk: one plain line, and no file that was not there before."""

import gzip
import shutil
import zipfile
from pathlib import Path

import pytest

from benchmarks.kill import own_cache, story
from tests.support.command_line import TINY_MODEL, run_command, succeed
from tests.support.full_disk import full_disk
from tests.support.labeled_images import SMALL as TINY_IMAGES
from tests.support.labeled_images import write_images
from tests.support.small_texts import SMALL, write_labels

LABELS = ("train", "labels.csv", *SMALL, "--budget", "3steps")
COMMANDS = {
    "a run": ("train", "text.txt", *TINY_MODEL, "--budget", "3steps"),
    "a run of examples": LABELS,
    "a run of pictures": ("train", "photos", "--budget", "3steps"),
    "answers.csv": ("predict", "labels", "labels.csv", "--out", "answers.csv"),
    "answers.jsonl": ("predict", "labels", "labels.csv", "--out", "answers.jsonl"),
    "answers.parquet": ("predict", "labels", "labels.csv", "--out", "answers.parquet"),
    "answers over others": ("predict", "labels", "labels.csv", "--out", "old.csv", "--overwrite"),
    "a picture": ("inspect", "labels", "confusion", "--out", "confusion.png"),
    "drawings": ("generate", "draw", "--samples", "4", "--out", "drawings.png", "--attention", "steps.png"),
    "a folder of drawings": ("generate", "draw", "--samples", "4", "--out", "drawings"),
    "a calibration": ("calibrate", "labels"),
    "an export": ("export", "attention", "exported"),
    "an import": ("import", "folder"),
    "a data set": ("data", "get", "scan"),
    "an unpacked file": ("train", "packed.txt.gz", *TINY_MODEL, "--budget", "3steps"),
    "an unpacked zip": ("train", "packed.zip", *TINY_MODEL, "--budget", "3steps"),
}


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the content of every file but the locks of the cache, which are empty."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, packed data and runs."""
    folder = tmp_path_factory.mktemp("full")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FOVEAL_CACHE", str(own_cache(folder / "cache")))
        Path("text.txt").write_text(story())
        write_labels()
        write_images("photos")
        Path("packed.txt.gz").write_bytes(gzip.compress(Path("text.txt").read_bytes()))
        with zipfile.ZipFile("packed.zip", "w") as archive:
            archive.writestr("a.txt", story())
            archive.writestr("b.txt", story())
        Path("old.csv").write_text("text,answer\n")
        succeed(*LABELS, "--run", "labels")
        gpt2 = ("model.positions.kind=learned", "model.activation=gelu-tanh", "model.projection_bias=false")
        settings = ("--model", "attention", *gpt2, "model.tie_embeddings=true", "--budget", "3steps")
        succeed("train", "text.txt", *TINY_MODEL, *settings, "--run", "attention")
        drawn = (*TINY_IMAGES, "--model", "draw", "model.width=16", "task.steps=3", "task.latent_size=4")
        succeed("train", "photos", *drawn, "--budget", "3steps", "--run", "draw")
        succeed("export", "attention", "folder")
        shutil.rmtree("cache/tokens", ignore_errors=True)
    return folder


@pytest.mark.parametrize("max_bytes", [0, 1000, 20_000])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_nothing_half_written(
    prepared: Path, here: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], max_bytes: int
) -> None:
    shutil.copytree(prepared, here, dirs_exist_ok=True)
    monkeypatch.setenv("FOVEAL_CACHE", str(here / "cache"))
    before = snapshot(here)
    with full_disk(max_bytes):
        result = run_command(*command)
    after = snapshot(here)
    assert not [name for name in after if ".part" in name]
    if result.code == 0:
        assert max_bytes
        return
    assert result.code == 1
    assert result.last.startswith("foveal: ")
    assert "can't write" in result.last
    run_is_left = any(name.startswith("runs/") for name in after)
    assert run_is_left or after == before
