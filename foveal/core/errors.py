"""Exceptions for failures that users can mend, and for failures while running."""


class UserError(Exception):
    """A problem that the user can mend. Its message is one plain line: where, what, and how to mend it.

    The command line prints the message without a traceback and exits with 2.
    """


class RunFailed(Exception):
    """A failure while running that the user did not cause. The command line exits with 1."""
