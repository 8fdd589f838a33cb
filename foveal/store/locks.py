"""Locks between processes, which are released when a process dies."""

import errno
import fcntl

UNSUPPORTED_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file, and return whether this process now has the lock.

    With `wait`, wait until another process releases the lock. On a file system without locks, return True,
    because locking is impossible there.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in UNSUPPORTED_ERRORS:
            raise
    return True
