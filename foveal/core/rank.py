"""The place of this process among the ranks of a job, which torchrun writes into the environment."""

import os


def world_size() -> int:
    """Return the number of processes that run this command together; 1 if there is no other."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process, from 0. Rank 0 prints, and writes files."""
    return int(os.environ.get("RANK", "0")) if world_size() > 1 else 0
