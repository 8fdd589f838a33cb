"""Exceptions for errors that users can fix, and for failures while running."""


class UserError(Exception):
    """An error that the user can fix. Its message is one plain line: where, what is wrong, and how to fix it.

    The command line prints the message without a traceback and exits with 2. A notebook shows it alone, too.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class RunFailed(Exception):
    """A failure while running that the user did not cause. The command line exits with 1."""


class TrainingDiverged(RunFailed):
    """Too many steps gave numbers that are not finite, which all ranks find together."""
