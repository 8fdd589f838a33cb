"""Locks between processes, which are released when a process dies."""

import errno

from filelock import lock_descriptor

UNSUPPORTED_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file, and return whether this process now has the lock.

    With `wait`, wait until another process releases the lock. On a system or file system without locks,
    return True, because locking is impossible there. On Windows no other process can read a locked file.
    """
    try:
        return lock_descriptor(descriptor, blocking=wait)
    except OSError as error:
        if error.errno not in UNSUPPORTED_ERRORS:
            raise
    return True
