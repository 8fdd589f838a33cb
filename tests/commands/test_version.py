"""What `foveal version` says of the machine, and completion in a shell."""

import json
import subprocess
from pathlib import Path

import pytest
import torch

import foveal
from foveal import cli
from foveal.commands.version import version
from foveal.core.errors import UserError


def test_version_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    version()
    facts = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line[0] != " ")
    assert [*facts] == ["foveal", "python", "system", "torch", "device", "kernels", "extras"]
    assert facts["torch"] == torch.__version__
    assert facts["device"].startswith("cpu: ")
    assert facts["kernels"].startswith("on: Numba ")


def test_version_for_programs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_KERNELS", "off")
    version(json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["foveal"] == foveal.__version__
    assert facts["device"]["threads"] == torch.get_num_threads()
    assert facts["kernels"]["off"] == "FOVEAL_KERNELS=off"
    assert facts["extras"].keys() >= {"av", "mlflow", "pyarrow", "tensorboard"}
    assert all(facts["extras"][name] for name in ("av", "pandas", "pyarrow", "tensorboard"))


def complete(script: Path, line: str) -> list[str]:
    """Return what bash offers at the end of a line."""
    words = line.split(" ")
    program = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _foveal; echo ${{COMPREPLY[@]}}"
    )
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    cli.install_completion(shell="bash")
    (script,) = (path for path in tmp_path.rglob("*") if path.name == "foveal")
    assert str(script) in (tmp_path / ".bashrc").read_text("utf-8")
    assert complete(script, "foveal ver") == ["version"]
    assert complete(script, "foveal train --bud") == ["--budget"]


def test_an_unknown_shell_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from cyclopts.completion import detect

    def unknown() -> str:
        raise detect.ShellDetectionError

    monkeypatch.setattr(detect, "detect_shell", unknown)
    with pytest.raises(UserError, match="add --shell bash, zsh, fish or powershell"):
        cli.install_completion()
