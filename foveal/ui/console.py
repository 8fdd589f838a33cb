"""Lines, tables, sizes and times for users, and JSON for programs."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from foveal.core.errors import UserError
from foveal.core.finite_json import finite_json
from foveal.core.log import notify_with
from foveal.core.terminal_text import escape_controls


class SafeConsole(Console):
    """A console that shows control characters as escapes, and leaves a closed pipe to the caller."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of anything that is printed. Only the console's own segments control."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_controls(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


STDERR = SafeConsole(stderr=True, highlight=False)
"""For everything but results."""
STDOUT = SafeConsole(highlight=False)
PREVIEW_WIDTH = 144
"""Most characters of a preview, which takes two lines of a terminal at this length."""


def log(message: str) -> None:
    """Print a line about the progress of the work on standard error."""
    STDERR.print(Text(escape_controls(message), style="dim"), soft_wrap=True)


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


def print_facts(rows: Sequence[tuple[str, str]], console: Console = STDERR) -> None:
    """Print names and values, aligned. Lines are not wrapped, so that users can copy commands from them."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        shown = Text.assemble((name.ljust(width), "bold cyan"), "  ", escape_controls(value))
        console.print(shown, soft_wrap=True)


def print_json(result: dict[str, Any]) -> None:
    """Print the result of `--json` on standard output. Numbers that are not finite become null."""
    import json

    text = json.dumps(finite_json(result), allow_nan=False)
    # The only control character that JSON leaves as it is.
    print(text.replace("\x7f", "\\u007f"), file=sys.stdout, flush=True)


def print_sections(sections: Iterable[str | Sequence[tuple[str, str]]]) -> None:
    """Print texts unchanged, and names with their values aligned, on standard output."""
    for section in sections:
        if isinstance(section, str):
            STDOUT.print(escape_controls(section), soft_wrap=True, markup=False)
        else:
            print_facts(section, STDOUT)


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
