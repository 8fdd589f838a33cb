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


FAILURES = (Exception, SystemExit)
"""What the code of a user may raise. `sys.exit` in it would end a command without a word."""


def describe_failure(error: BaseException) -> str:
    """Return in one line what the code of a user has raised."""
    if isinstance(error, SystemExit):
        return "it ends the program (sys.exit)"
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def describe_failed_import(error: BaseException) -> str:
    """Return in one line why a file of a user can't be imported, and what mends it."""
    advice = "; put what only a script does below if __name__ == '__main__'"
    return f"{describe_failure(error)}{advice if isinstance(error, SystemExit) else ''}"


class TrainingDiverged(RunFailed):
    """Too many steps gave numbers that are not finite, which all ranks find together."""
