"""The one exception that a user can mend."""


class UserError(Exception):
    """Something the user can mend: one plain line that says where, what, and how to mend it.

    The command line prints it without a traceback and exits with 2.
    """


class RunFailed(Exception):
    """A failure while running that the user did not cause; the command line exits with 1."""
