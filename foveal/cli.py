"""The table of commands. A command is imported when it is called, so `foveal --help` answers at once."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from keyword import iskeyword
from typing import Literal

import cyclopts

import foveal
from foveal.commands import COMMON_HELP
from foveal.core.rank import has_launcher, leave_to_launcher, rank, world_size
from foveal.core.signals import Interrupted, SignalHandler
from foveal.plugins.options import describe_parts, plugins_of_command, take_plugin_options
from foveal.ui.standard_streams import (
    STDOUT_NAME,
    drop_standard_output,
    passing_line,
    prepare_standard_streams,
)

QUIET_FLAGS = {"-q", "--quiet"}
APP = cyclopts.App(
    name="foveal",
    help="Train, inspect and use sequence and vision models on your own data.",
    version=foveal.__version__,
    help_epilogue=COMMON_HELP,
)

COMMANDS = {
    "train": "Train a model on text, pairs, labels, recordings, series, images, clips or maps.",
    "resume": "Continue a stopped run exactly where it was, or a finished one with a larger budget.",
    "runs": "List the runs in a folder: data, model, score, minutes and state.",
    "evaluate": "Score a run on its held-out data, or on other data.",
    "generate": "Generate text, targets, captions, masked words or images with a run.",
    "predict": "Print a run's prediction for each row, image, recording, clip or map.",
    "calibrate": "Fit the probabilities of a run's labels to how often they are right.",
    "inspect": "Look inside a run, or inside a model before its training.",
    "compare": "Train several models on equal terms, and say which differ.",
    "compare-finetuning": "Compare ways to fine-tune a run on your own images.",
    "tune": "Choose the settings of a training in seven steps, and say why.",
    "import": "Create a run from a Hugging Face model folder, a GGUF file, or published weights.",
    "export": "Write a run as a Hugging Face model folder.",
    "data": "List, describe or download the named data sets, or check your own data.",
    "models": "List the presets, or describe one.",
    "plan": "Predict the memory and the time of a training, on many processes or on this machine.",
    "check": "Check that a model, a run, a plugin or your own module keeps the laws that all promise.",
    "version": "Print the versions of Foveal and torch, the device, the kernels and the extras.",
}
EXAMPLES = {
    "train": (
        "foveal train notes.txt --budget 10m",
        "foveal train notes.txt --model attention model.layers=6 data.tokenizer=bpe",
        "foveal train reviews.csv data.text=review data.label=mood",
        "foveal train train.en,train.de --valid valid.en,valid.de --run translator",
    ),
    "evaluate": ("foveal evaluate translator", "foveal evaluate translator other.tsv --json"),
    "generate": (
        "foveal generate runs/notes-demo-1 --prompt 'It was' --tokens 200 --temperature 0.8",
        "foveal generate translator --input sources.txt --beam 5",
    ),
    "predict": (
        "foveal predict runs/reviews-text-classification-1 more.csv",
        "foveal predict runs/photos-image-classification-1 photos/ --out answers.csv --top 5",
        "foveal predict runs/reviews-text-classification-1 --text 'a great film' --threshold 0.8",
    ),
}
"""Examples in the help of the commands with most arguments."""


HELP_FLAGS = {"--help", "-h", "--version"}
"""Flags that ask for a text alone."""
MIN_COLUMNS = 20
"""The narrowest terminal that is believed."""
NAME_ERRORS = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)
"""Errors of the system that come from the name that the user gave."""

for name, purpose in COMMANDS.items():
    module = f"{name}_" if iskeyword(name) else name.replace("-", "_")
    # `foveal data` and `foveal models` have commands of their own, `foveal inspect` has views: all are apps.
    target = "app" if name in ("data", "inspect", "models") else module
    more = {}
    if name in EXAMPLES:
        lines = "".join(f"    {line}\n" for line in EXAMPLES[name])
        more["help_epilogue"] = f"Examples:\n\n{lines}\n{COMMON_HELP}"
    if name == "train":
        more["usage"] = "Usage: foveal train [OPTIONS] DATA [KEY.SUB=VALUE...]"
    APP.command(f"foveal.commands.{module}:{target}", name=name, help=purpose, **more)


@APP.command(name="--install-completion")
def install_completion(*, shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> None:
    """Let the shell complete commands and options with the Tab key.

    Parameters
    ----------
    shell
        The shell; if not given, the one that runs this command.
    """
    from cyclopts.completion.detect import ShellDetectionError

    from foveal.core.errors import UserError
    from foveal.ui.console import log

    try:
        path = APP.install_completion(shell=shell)
    except ShellDetectionError:
        raise UserError(
            "--install-completion: unknown shell; add --shell bash, zsh, fish or powershell"
        ) from None
    log(f"{path}: written, and read when a shell starts; open a new one")


def main() -> None:
    """Run the `foveal` command. It exits with 0, 1 (failed while running), 2 (a user's error), 130 or 143."""
    arguments = sys.argv[1:]
    prepare_standard_streams()
    debug, quiet = "--debug" in arguments, not QUIET_FLAGS.isdisjoint(arguments)
    arguments = [argument for argument in arguments if argument not in {"--debug", *QUIET_FLAGS}]
    _refuse_half_characters(arguments)
    if os.environ.get("COLUMNS", "").isdigit() and int(os.environ["COLUMNS"]) < MIN_COLUMNS:
        del os.environ["COLUMNS"]  # nothing, or a letter a line, would be printed
    try:
        if world_size() > 1 and not debug:  # our line says what happened, torch's is a stack of C++
            os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
        options = take_plugin_options(arguments)
        arguments = options.arguments
        with SignalHandler() as signals, ExitStack() as plugins:
            with signals.deferred(), _starting(arguments, quiet):  # torch swallows exceptions while imported
                command, bound, _ = APP.parse_args(arguments, exit_on_error=False, print_error=False)
                plugins.enter_context(plugins_of_command(options))
            with _silence() if quiet or rank() else nullcontext():
                command(*bound.args, **bound.kwargs)
            if options.plugins and HELP_FLAGS & {*arguments}:
                print(describe_parts(options.plugins))
            sys.stdout.flush()
    except cyclopts.CycloptsError as error:
        token = error.token if isinstance(error, cyclopts.UnknownOptionError) else None
        unknown = "" if token is None else token.value.partition("=")[0]
        message = _explain_old_arguments(arguments, unknown) or str(error)
        _exit_with_error(f"{message} (foveal {' '.join([*(error.command_chain or ()), '--help'])})", 2)
    except Interrupted as stop:
        if rank() or leave_to_launcher(stop.where):
            raise SystemExit(stop.exit_code) from None  # rank 0 or its launcher says what was saved
        _exit_with_error(str(stop), stop.exit_code)
    except BrokenPipeError:
        # The reader of the output has closed the pipe (`foveal ... | head`): nothing is left to print.
        drop_standard_output()
        raise SystemExit(141) from None
    except Exception as error:
        if debug:
            raise
        code, message = _exit_code_and_message(error)
        _exit_with_error(message, code)


def _refuse_half_characters(arguments: list[str]) -> None:
    """Exit with 2 if an argument is not UTF-8 text. Only the paths of existing files may be any bytes."""
    for argument in arguments:
        values = (argument, *argument.partition("=")[2:], *argument.split(","))
        if any("\ud800" <= letter <= "\udfff" for letter in argument) and not any(
            value and os.path.exists(value) for value in values
        ):
            _exit_with_error(f"{argument}: not UTF-8 text; write it in UTF-8", 2)


@contextmanager
def _starting(arguments: list[str], quiet: bool) -> Iterator[None]:
    """Return a context that says that a command starts, if it has yet to import torch, which takes seconds.

    A terminal shows the line until the command is imported. A launcher says so for its ranks.
    """
    is_command = bool(arguments) and arguments[0] in COMMANDS and not HELP_FLAGS & {*arguments}
    starts = is_command and not (quiet or rank() or has_launcher()) and "torch" not in sys.modules
    if starts and not (sys.stderr is not None and sys.stderr.isatty()):
        print(f"foveal {arguments[0]} ...", file=sys.stderr, flush=True)
    with passing_line(f"foveal {arguments[0]} ...") if starts else nullcontext():
        yield


def _silence() -> AbstractContextManager[None]:
    """Return a context in which only results and errors are printed."""
    from foveal.ui.console import silence

    return silence(True)


def _explain_old_arguments(arguments: list[str], unknown: str) -> str:
    """Return the new name of an old command or option, or ours for the `unknown` option; else nothing."""
    from foveal.config import other_word_advice
    from foveal.config.old_names import COMMANDS as OLD_COMMANDS
    from foveal.config.old_names import OPTIONS as OLD_OPTIONS

    if arguments and arguments[0] in OLD_COMMANDS:
        return f"foveal {arguments[0]} is now foveal {OLD_COMMANDS[arguments[0]]}"
    options = [argument.partition("=")[0] for argument in arguments]
    old = [f"{option} is now {OLD_OPTIONS[option]}" for option in options if option in OLD_OPTIONS]
    advice = [f"unknown option {unknown}{hint}" for hint in [other_word_advice(unknown.lstrip("-"))] if hint]
    return next(iter([*old, *advice]), "")


def _exit_code_and_message(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
    from foveal.config import ConfigError
    from foveal.core.errors import RunFailed, UserError
    from foveal.plugins.loading import line_in_plugin

    if isinstance(error, (UserError, ConfigError)):
        return 2, str(error)
    if isinstance(error, RunFailed):
        return 1, str(error)
    if isinstance(error, OSError) and error.filename:
        return 2 if error.errno in NAME_ERRORS else 1, f"{error.filename}: {error.strerror}"
    # The words of torch on a CPU and on CUDA, and of numpy.
    allocation = re.search(r"(?:tried|unable) to allocate (\S+ \w+)", str(error), re.IGNORECASE)
    if allocation or isinstance(error, MemoryError):
        size = f" for {allocation[1]}" if allocation else ""
        return 2, f"not enough memory{size}: take a smaller model, data.context_length or data.batch_tokens"
    problem = f"{type(error).__name__}: {error}"
    if place := line_in_plugin(error):
        return 1, f"{place}: {problem} (an error in a plugin: --debug shows the whole of it)"
    return 1, f"{problem} (an error in Foveal itself: --debug shows where)"


def _exit_with_error(message: str, code: int) -> None:
    from foveal.store.cache import shorten_unpacked_paths
    from foveal.ui.error_line import print_error

    if message.startswith(STDOUT_NAME):
        drop_standard_output()
    message = f"rank {rank()}: {message}" if rank() else message
    print_error(shorten_unpacked_paths(message))
    raise SystemExit(code)
