"""Ranks that a user starts by hand, as processes of their own, each of which may differ from the others."""

import os
import socket
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from tests.support.command_line import CommandResult, run_command


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run_by_hand(arguments: Sequence[str], *before: str) -> list[CommandResult]:
    """Run `foveal ARGUMENTS -q` in as many ranks as there are texts in `before`, each of which is Python that
    the rank executes first. Return what each rank said."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["foveal.commands.train"])
    shared = {"WORLD_SIZE": str(len(before)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    with ProcessPoolExecutor(len(before), mp_context=context) as processes:
        calls = [
            processes.submit(
                _run, arguments, first, Path.cwd(), dict(os.environ) | shared | {"RANK": str(rank)}
            )
            for rank, first in enumerate(before)
        ]
        return [call.result(timeout=120) for call in calls]


def _run(arguments: Sequence[str], first: str, folder: Path, environment: dict[str, str]) -> CommandResult:
    os.environ.update(environment)
    os.chdir(folder)
    torch.set_num_threads(1)
    exec(first, {})
    return run_command(*arguments, "-q")
