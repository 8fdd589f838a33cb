"""Small files that would take very much memory or time are refused in one plain line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.table_bombs import BOMBS, MIB

MEASURE = """
import json, sys
from pathlib import Path
from time import process_time
from tests.support.command_line import run_command
from tests.support.table_bombs import BOMBS

def memory(of):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(of)).split()[1]) << 10

folder = Path(sys.argv[1])
run_command("train", str(folder / "none.parquet"))  # what is imported once is not measured
for name, make in BOMBS.items():
    make(folder / name)
    paths = [folder / part for part in name.split(",")]
    Path("/proc/self/clear_refs").write_text("5")  # what was most is now
    before, start = memory("VmRSS"), process_time()
    result = run_command("train", ",".join(map(str, paths)), "--budget", "3steps", "--run", folder / "run")
    seconds, most = process_time() - start, memory("VmHWM") - before
    size = sum(path.stat().st_size for path in paths)
    print(json.dumps([name, [result.code, result.err, most, seconds, size]]), flush=True)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By name the exit code, what was told, the most bytes, the seconds and the size of the file."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is measured on Linux")
    command = [sys.executable, "-c", MEASURE, str(tmp_path_factory.mktemp("bombs"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(found: dict[str, Any], name: str) -> None:
    code, told, most, seconds, size = found[name]
    assert size < 2 * MIB
    assert code == 2
    assert [line for line in told.splitlines() if not line.startswith("reading ")] == [told.splitlines()[-1]]
    assert "; " in told  # how to fix it
    assert len(told) < 500
    assert most < 300 * MIB
    assert seconds < 5
