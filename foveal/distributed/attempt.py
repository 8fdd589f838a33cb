"""The name of this start of the ranks, which their keys begin with.

torchrun keeps its store when it starts the ranks again, with the keys of the ranks that have ended: with the
addresses at which nobody listens any more, for example. So each start has keys of its own.
"""

import time
from datetime import timedelta
from uuid import uuid4

from torch.distributed.distributed_c10d import Store

from foveal.core.errors import UserError

ATTEMPT = "attempt"
POLL_SECONDS = 0.02


def name_attempt(store: Store, rank: int, size: int, timeout: timedelta) -> str:
    """Return a name for this start of the ranks, which no other start has, and all ranks of this one.

    Rank 0 names the start and waits for the others. They may read the name of an earlier start first, which
    does not answer them, so they ask until one does.

    Raises: UserError: rank 0 does not answer.
    """
    own = uuid4().hex
    if rank == 0:
        store.set(ATTEMPT, own)
        others = [store.get(f"{own}/{other}").decode() for other in range(1, size)]
        store.set(f"{own}/ranks", " ".join(others))
        return own
    end = time.monotonic() + timeout.total_seconds()
    while time.monotonic() < end:
        attempt = store.get(ATTEMPT).decode()
        ranks = f"{attempt}/ranks"
        store.set(f"{attempt}/{rank}", own)
        if store.check([ranks]) and own in store.get(ranks).decode().split():
            return attempt
        time.sleep(POLL_SECONDS)
    raise UserError(f"rank 0 has not started within {timeout.total_seconds():g} s: start all ranks again")
