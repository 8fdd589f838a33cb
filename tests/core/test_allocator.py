"""What is free: what the machine says, or a container's limit less its use, whichever is less."""

import sys
from pathlib import Path

import pytest

from foveal.core.allocator import (
    CGROUPS,
    MEMINFO,
    free_memory,
    machine_memory,
    process_peak,
    reset_process_peak,
    resident_memory,
)
from foveal.core.runtime import release_freed_memory


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_nothing_is_known_where_nothing_is_said(tmp_path):
    assert free_memory(tmp_path) is None
    write(tmp_path, MEMINFO, "MemTotal:       24684084 kB\n")
    assert free_memory(tmp_path) is None


@pytest.mark.parametrize("names", CGROUPS)
def test_the_least_of_machine_and_container(tmp_path, names):
    limit, use, stat = names
    write(tmp_path, MEMINFO, "MemTotal:       24684084 kB\nMemFree:   1000 kB\nMemAvailable:   4000 kB\n")
    write(tmp_path, limit, "max\n")
    write(tmp_path, use, "1000000\n")
    write(tmp_path, stat, "anon 900000\nfile 100000\ninactive_file 50000\nactive_file 50000\n")
    assert free_memory(tmp_path) == 4000 * 1024
    write(tmp_path, limit, "3000000\n")
    assert free_memory(tmp_path) == 2_100_000
    write(tmp_path, limit, "900000\n")
    assert free_memory(tmp_path) == 0
    write(tmp_path, limit, str(2**63 - 4096))
    assert free_memory(tmp_path) == 4000 * 1024


def test_files_of_the_groups_below_are_free_too_as_their_use_counts(tmp_path):
    limit, use, stat = CGROUPS[1]
    write(tmp_path, limit, "3000000\n")
    write(tmp_path, use, "1000000\n")
    write(tmp_path, stat, "inactive_file 8\ntotal_inactive_file 50000\ntotal_active_file 20000\n")
    assert free_memory(tmp_path) == 2_070_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no peak that begins anew")
def test_a_peak_begins_anew():
    size = 300_000_000
    taken = b"1" * size
    before = process_peak()
    del taken
    release_freed_memory()
    reset_process_peak()
    if process_peak() == before:
        pytest.skip("this system lets no process begin its peak anew")
    assert process_peak() < before - size / 2


@pytest.mark.parametrize("memory", [machine_memory, resident_memory, process_peak])
def test_systems_without_linux_files_know_the_same(tmp_path, memory):
    assert memory(tmp_path) == pytest.approx(memory(), rel=0.2)
