"""`python -m foveal.api.own_module FILE RANKS` launches the ranks of `foveal.Trainer`, or is one of them."""

import sys

from foveal.core.rank import leave_to_launcher, rank
from foveal.core.signals import Interrupted, SignalHandler
from foveal.ui.error_line import print_error


def main() -> None:
    """Start the ranks, or train as one of them. Exit with the codes of the `foveal` command."""
    try:
        with SignalHandler() as signals:
            with signals.deferred():  # torch swallows exceptions while imported
                from foveal.api.own_module.rank import exit_code_and_message, launch_or_train
            file, ranks = sys.argv[1:]
            launch_or_train(file, int(ranks))
    except Interrupted as stop:
        if not (rank() or leave_to_launcher(stop.where)):  # rank 0 or its launcher says what was saved
            print_error(str(stop))
        raise SystemExit(stop.exit_code) from None
    except Exception as error:
        code, message = exit_code_and_message(error)
        print_error(f"rank {rank()}: {message}" if rank() else message)
        raise SystemExit(code) from None


if __name__ == "__main__":
    main()
