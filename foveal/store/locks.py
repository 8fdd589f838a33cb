"""Locks between processes, which the death of one undoes."""

import errno
import fcntl

UNSUPPORTED_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


def lock(descriptor: int, *, wait: bool) -> bool:
    """Whether this process holds the lock of an open file now: not if another does, unless it is waited for.

    A file system without locks keeps nobody out.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in UNSUPPORTED_ERRORS:
            raise
    return True
