"""The GPU of a rank: that with the rank's number on its machine, which torchrun writes into LOCAL_RANK."""

import os

import torch

from foveal.core.errors import UserError
from foveal.core.rank import processes_here, world_size


def gpu_of_rank(name: str) -> torch.device:
    """Return the GPU of this rank, for the device called `name`. NCCL refuses two ranks on one GPU.

    Raises: UserError: this machine has fewer GPUs than ranks, or the rank has no number on this machine.
    """
    number, gpus = local_rank(), torch.cuda.device_count()
    if number is None:
        raise UserError(
            f"--device {name}: set LOCAL_RANK to the number of this rank on its machine, from 0, as torchrun "
            "does; or use --device cpu"
        )
    processes = max(processes_here(), number + 1)
    if processes > gpus:
        has = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
        raise UserError(
            f"--device {name}: this machine has {has}, and {processes} processes, which need one each: "
            "start fewer, or use --device cpu"
        )
    return torch.device("cuda", number)


def use_gpu_of_rank() -> None:
    """Let CUDA and NCCL use the GPU of this rank, if there is one."""
    number = local_rank()
    if number is not None and number < torch.cuda.device_count():
        torch.cuda.set_device(number)


def name_for_run(device: torch.device) -> str:
    """Return the name of a device as a run keeps it. It depends on no rank."""
    return device.type if world_size() > 1 else str(device)


def local_rank() -> int | None:
    """Return the number of this rank on its machine; None if nothing says it."""
    number = os.environ.get("LOCAL_RANK", "")
    return int(number) if number.isdecimal() else None
