"""Lines, tables, sizes and times for users, and JSON for programs."""

import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from foveal.core.errors import UserError
from foveal.core.finite_json import finite_json
from foveal.core.log import notify_with
from foveal.core.terminal_text import escape_controls
from foveal.ui.wording import reword

COMMAND = r"""\(?(?<![\w./-])foveal (?:'[^']*'|"[^"]*"|[;,)](?!\s|$)|(?! or foveal )[^;,)'"])*\S*"""
"""A command in a line: to the end, or to a punctuation mark or an "or" that ends the command."""
COLUMN_GAP = 2
"""Spaces between the columns of a table."""
MIN_WRAP_WIDTH = 16
"""In narrower columns no line is wrapped."""


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class SafeConsole(Console):
    """A console that shows control characters as escapes, and leaves a closed pipe to the caller.

    In a notebook all goes to standard output, since notebooks show standard error as a failure, in red.
    """

    @property
    def file(self) -> Any:
        """The stream to print to."""
        return sys.stdout if self.stderr and in_notebook() else super().file

    @file.setter
    def file(self, stream: Any) -> None:
        self._file = stream

    @property
    def is_terminal(self) -> bool:
        """Return whether this is a terminal. The output of a notebook says so, but moves no cursor."""
        return super().is_terminal and not in_notebook() and not self.quiet

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of anything that is printed. Only the console's own segments control."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_controls(segment.text), segment.style)

    def print_wrapped(self, text: Text | str, indent: int = 2) -> None:
        """Print lines of text. On a terminal they are wrapped between words, and go on after `indent` spaces.

        A command in a line is not wrapped, so that users can copy it. Elsewhere no line is wrapped.
        """
        text = Text(text) if isinstance(text, str) else text
        if self.is_terminal:
            text = Text("\n").join(self._wrap(line, indent) for line in text.split(allow_blank=True))
        self.print(text, soft_wrap=True)

    def _wrap(self, line: Text, indent: int) -> Text:
        if self.width - indent < MIN_WRAP_WIDTH:
            return line
        breaks: list[int] = []
        start = 0
        for word in re.finditer(rf"{COMMAND}|\S+", line.plain):
            width = self.width - (indent if breaks else 0)
            if word.start() > max(start, indent) and cell_len(line.plain[start : word.end()]) > width:
                start = word.start()
                breaks.append(start)
        parts = line.divide(breaks)
        for part in parts:
            part.rstrip()
        return Text("\n" + " " * indent).join(parts)

    def print_table(self, rows: Sequence[Mapping[str, str]], drop: Sequence[str]) -> None:
        """Print a table with a header. If its words don't fit, the columns `drop` are left out, in order."""
        columns = {name: max(map(_longest_word, [name, *(row[name] for row in rows)])) for name in rows[0]}
        for name in drop:
            if sum(columns.values()) + COLUMN_GAP * len(columns) > self.width:
                del columns[name]
        headers = (Column(name, min_width=width, overflow="fold") for name, width in columns.items())
        table = Table(*headers, box=None, header_style="bold", pad_edge=False)
        for row in rows:
            table.add_row(*(row[column] for column in columns))
        self.print(table)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


STDERR = SafeConsole(stderr=True, highlight=False, force_jupyter=False)
"""For everything but results."""
WARNINGS = SafeConsole(stderr=True, highlight=False, force_jupyter=False)
"""For warnings if `STDERR` is quiet."""
STDOUT = SafeConsole(highlight=False, force_jupyter=False)
Sections = Iterable[str | Sequence[tuple[str, str]]]
"""Texts, and names with their values."""
_silences, _silence_lock = [0], threading.Lock()
PREVIEW_WIDTH = 144
"""Most characters of a preview, which takes two lines of a terminal at this length."""


@contextmanager
def silence(is_quiet: bool) -> Iterator[None]:
    """Return a context in which nothing but results, warnings and errors is printed, if `is_quiet`."""
    _count_silence(is_quiet)
    try:
        yield
    finally:
        _count_silence(-is_quiet)


def _count_silence(more: int) -> None:
    """Count the silent blocks, since those of several threads end in any order."""
    with _silence_lock:
        _silences[0] += more
        STDERR.quiet = _silences[0] > 0


def log(message: str) -> None:
    """Print a line about the progress of the work on standard error."""
    STDERR.print_wrapped(Text(escape_controls(reword(message)), style="dim"))


def warn(message: str) -> None:
    """Print a line about what changes the result, also where nothing else is printed."""
    if STDERR.quiet:
        WARNINGS.print_wrapped(Text(escape_controls(reword(message))))
    else:
        log(message)


def print_plain(text: str, end: str = "\n") -> None:
    """Print a text as it is on standard output, but for control characters, which become escapes."""
    print(escape_controls(text), end=end, file=sys.stdout, flush=True)


def write_exact(text: str) -> None:
    """Write a generated text on standard output: exactly into a file or pipe, with escapes on a terminal."""
    print(escape_controls(text) if sys.stdout.isatty() else text, end="", file=sys.stdout, flush=True)


notify_with(log)


def check_png_path(out: Path | None) -> None:
    """Check the file name of a picture.

    Raises: UserError: the name does not end in .png.
    """
    if out is not None and out.suffix.lower() != ".png":
        raise UserError(f"{out}: expected a name that ends in .png")


def print_facts(rows: Sequence[tuple[str, str]], console: SafeConsole = STDERR) -> None:
    """Print names and values, aligned. Commands are not wrapped, so that users can copy them."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        shown = Text.assemble((name.ljust(width), "bold cyan"), "  ", escape_controls(reword(value)))
        console.print_wrapped(shown, width + 2)


def print_json(result: dict[str, Any]) -> None:
    """Print the result of `--json` on standard output. Numbers that are not finite become null."""
    import json

    text = json.dumps(finite_json(result), allow_nan=False)
    # The only control character that JSON leaves as it is.
    print(text.replace("\x7f", "\\u007f"), file=sys.stdout, flush=True)


def print_sections(sections: Sections) -> None:
    """Print texts unchanged, and names with their values aligned, on standard output."""
    for section in sections:
        if isinstance(section, str):
            STDOUT.print_wrapped(escape_controls(section))
        else:
            print_facts(section, STDOUT)


def sections_text(sections: Sections) -> str:
    """Return what `print_sections` prints, with its lines as long as they are."""
    lines = list[str]()
    for section in sections:
        facts = [] if isinstance(section, str) else section
        width = max((len(name) for name, _ in facts), default=0)
        lines += [section] if isinstance(section, str) else []
        lines += [f"{name.ljust(width)}  {reword(value)}" for name, value in facts]
    return "\n".join(map(escape_controls, lines))


def truncate(text: str, max_length: int) -> str:
    """Return at most `max_length` characters of a text. A shortened text ends with an ellipsis."""
    return text if len(text) <= max_length else f"{text[: max_length - 4]} ..."


def format_loss(scores: dict[str, Any], per: str = "") -> str:
    """Return the loss with its unit, such as nats per token (`per`), or a missed reward as a part of 1."""
    return f"{scores['loss']:.4f} {'of the reward missed' if 'reward' in scores else f'nats{per}'}"


def format_extra_metrics(scores: dict[str, Any]) -> str:
    """Return the metrics to print after the loss."""
    bits = scores.get("bits_per_character")
    text = "" if bits is None else f", {bits:.4f} bits per character"
    shares = (f", {name} {100 * scores[name]:.1f} %" for name in ("accuracy", "success") if name in scores)
    return text + "".join(shares)


def format_duration(seconds: float) -> str:
    """Return a duration such as `under 1 s`, `45 s`, `2:05` or `1:02:05`."""
    if 0 < seconds < 1:
        return "under 1 s"
    rounded = max(0, round(seconds))
    if rounded < 60:
        return f"{rounded} s"
    hours, rest = divmod(rounded, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def format_bytes(count: int) -> str:
    """Return a size in both units, such as `1.2 GB (1.1 GiB)`, because the units are often confused."""
    for power, unit, binary in ((3, "GB", "GiB"), (2, "MB", "MiB"), (1, "kB", "KiB")):
        if count >= 1000**power:
            return f"{count / 1000**power:,.1f} {unit} ({count / 1024**power:,.1f} {binary})"
    return f"{count} B"
