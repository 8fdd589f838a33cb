"""Why the steps of a process may round otherwise than those of the process that began the run."""

import torch

from foveal.core.terminal_text import counted
from foveal.distributed.world import World
from foveal.store.run import RunFolder


def rounding_of(run: RunFolder, device: torch.device, world: World) -> str:
    """Return in what this process differs from the one that began the run, if sums then have other last bits;
    empty if they have not.

    A run goes on with any processes, on any machine, so each step says this of itself, and run.json does not.
    """
    facts = run.manifest
    begun_on = torch.device(facts["data"].get("device", device))
    begun = facts["torch"], facts["threads"], begun_on.type
    now = torch.__version__, torch.get_num_threads(), device.type
    in_words = f"torch {now[0]}", counted(now[1], "thread"), f"--device {now[2]}"
    others = (words for words, then, own in zip(in_words, begun, now, strict=True) if then != own)
    return ", ".join(filter(None, (world.layout, *others)))
