"""`python -m foveal.api.own_module FILE RANKS` launches the ranks of `foveal.Trainer`, or is one of them."""

import sys

from foveal.core.errors import UserError
from foveal.core.rank import leave_to_launcher, rank
from foveal.core.signals import Interrupted, SignalHandler
from foveal.ui.error_line import print_error


def main() -> None:
    """Start the ranks, or train as one of them. Exit with the codes of the `foveal` command."""
    file, ranks = sys.argv[1:]
    try:
        with SignalHandler() as signals:
            with signals.deferred():  # torch swallows exceptions while imported
                from foveal.api.own_module.launcher import launch
                from foveal.distributed.launch import is_launched

                if is_launched():
                    from foveal.api.own_module.rank import train
            if is_launched():
                train(file)
            else:
                launch(file, int(ranks))
    except Interrupted as stop:
        if not (rank() or leave_to_launcher(stop.where)):  # rank 0 or its launcher says what was saved
            print_error(str(stop))
        raise SystemExit(stop.exit_code) from None
    except Exception as error:
        print_error(f"rank {rank()}: {error}" if rank() else str(error))
        raise SystemExit(2 if isinstance(error, UserError) else 1) from None


if __name__ == "__main__":
    main()
