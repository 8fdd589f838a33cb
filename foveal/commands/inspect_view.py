"""The arguments of `foveal inspect`, which the view parses; and what it prints, draws and writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cyclopts
import torch
from cyclopts import App, Parameter

from foveal.api.view import AnyView, all_views, choose_view, compute_view, fitting_views
from foveal.commands import COMMON_HELP
from foveal.commands.inspect_report import check_report_path, print_report
from foveal.core.errors import UserError
from foveal.core.log import each_once
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.inspection.files import check_folder, check_payload_path, write_payload, write_thumbnail
from foveal.inspection.payload import Payload
from foveal.inspection.view import ModelView
from foveal.tasks.cached_session import cached
from foveal.tasks.session import Session, load
from foveal.tasks.untrained_model import untrained_model
from foveal.ui.console import STDOUT, log, print_json, print_sections
from foveal.ui.progress_bar import ProgressBar

HELP_FLAGS = ("--help", "-h")
HELP = (
    "Look inside WHAT: a run folder; or, before any training, a preset, a TOML file, or the name of an image "
    "network. `foveal inspect WHAT VIEW --help` lists the options of a view."
)
EXAMPLES = f"""Examples:

    foveal inspect runs/photos-image-classification-1 confusion --out confusion.png
    foveal inspect mlp-10 activations --initialization 0.01,0.05,kaiming --out first.png
    foveal inspect runs/photos-image-classification-1 --report photos.html
    foveal inspect runs/photos-image-classification-1 --open

{COMMON_HELP}"""


@dataclass(frozen=True)
class CommonOptions:
    """The options of every view."""

    out: Path | None = None
    """Draw the view into this .png, .svg, .pdf or .html, or write its numbers into this .json."""
    control: Annotated[bool, Parameter(negative="")] = False
    """Show the same view of random weights, too, and what it costs to remove what the view highlights."""
    device: str = "auto"
    """cpu, cuda, mps, or auto."""
    json: Annotated[bool, Parameter(negative="")] = False
    """Print one JSON object on standard output."""


@dataclass(frozen=True)
class ListOptions:
    """The options where no view is named."""

    out: Path | None = None
    """Draw a small picture of each view that fits into this folder."""
    report: Path | None = None
    """Write all views that fit into this .html, which needs no network."""
    device: str = "auto"
    """cpu, cuda, mps, or auto."""
    json: Annotated[bool, Parameter(negative="")] = False
    """Print one JSON object on standard output."""


class Request(NamedTuple):
    """The parsed arguments of a view."""

    settings: tuple[str, ...]
    options: Any
    common: CommonOptions


def inspect(tokens: Sequence[str]) -> None:
    """Look inside a run, or inside a model before its training."""
    views = all_views()
    if not tokens or tokens[0] in HELP_FLAGS:
        _print_help(views)
        return
    subject, *rest = tokens
    if subject.startswith("-"):
        raise UserError(f"{subject}: name a run or a model first: foveal inspect WHAT [VIEW] {subject} ...")
    is_named = bool(rest) and not rest[0].startswith("-") and "=" not in rest[0]
    if Path(subject).is_dir() and not is_named:
        _list_views(subject, rest)
        return
    view = choose_view(rest.pop(0) if is_named else None)
    request = _parse(views, view, subject, rest)
    if request is not None:
        with SignalHandler():
            _show(view, subject, request)


def _list_views(subject: str, rest: Sequence[str]) -> None:
    """Print the views that fit a run, and why others do not; draw each into the folder of `--out`.

    Raises: UserError: an option belongs to a view.
    """
    parser = App(name="inspect", help=HELP, version_flags=(), console=STDOUT)

    @parser.default
    def parse(*, options: Annotated[ListOptions, Parameter(name="*")] = ListOptions()) -> ListOptions:
        return options

    try:
        command, bound, _ = parser.parse_args(rest, exit_on_error=False, print_error=False)
    except cyclopts.UnknownOptionError:
        raise UserError(
            f"{rest[0]}: name a view first: foveal inspect {subject} VIEW {rest[0]} ..."
        ) from None
    options = command(*bound.args, **bound.kwargs)
    if not isinstance(options, ListOptions):
        return
    check_report_path(options.report)
    session = cached(load(subject, resolve_device(options.device)))
    views, reasons = fitting_views(session)
    if options.report is not None:
        with SignalHandler():
            print_report(session, views, reasons, options.report, options.json)
        return
    with SignalHandler():
        pictures = {} if options.out is None else _draw_thumbnails(views, session, options.out)
    if options.json:
        fitting = [
            {"view": view.name, "summary": view.summary, "picture": pictures.get(view.name)} for view in views
        ]
        print_json({"run": subject, "views": fitting, "others": reasons})
        return
    print_sections([f"foveal inspect {subject} VIEW shows:\n", [(view.name, view.summary) for view in views]])
    if reasons:
        print_sections(["\nothers do not fit:\n", [*reasons.items()]])
    if pictures:
        print_sections(["", [*pictures.items()]])


def _draw_thumbnails(views: Sequence[AnyView], session: Session, folder: Path) -> dict[str, str]:
    """Draw each view with its default options. Return the files, or why there is none, by view."""
    check_folder(folder)
    pictures, new_lines = {}, each_once(log)
    for view in views:
        path = folder / f"{view.name}.png"
        try:
            write_thumbnail(compute_view(view, session, view.Options(), log=new_lines), path)
            pictures[view.name] = str(path)
        except UserError as error:
            pictures[view.name] = f"not drawn: {error}"
    return pictures


def _view_app(view: AnyView, subject: str) -> App:
    """Return the parser of a view's options: its own and the common ones."""

    def parse(*settings: Any, options: Any = view.Options(), common: Any = CommonOptions()) -> Request:  # noqa: B008
        return Request(settings, options, common)

    hidden = not isinstance(view, ModelView)
    parse.__annotations__ = {
        "settings": Annotated[
            str, Parameter(show=not hidden, help="Settings of a model without a run: key.sub=value.")
        ],
        "options": Annotated[view.Options, Parameter(name="*")],
        "common": Annotated[CommonOptions, Parameter(name="*")],
    }
    usage = f"Usage: foveal inspect {subject} {view.name} [OPTIONS]{'' if hidden else ' [KEY.SUB=VALUE...]'}"
    no_empty = Parameter(negative_iterable=())
    parser = App(
        name="inspect",
        help=view.summary,
        usage=usage,
        version_flags=(),
        console=STDOUT,
        default_parameter=no_empty,
    )
    parser.default(parse)
    return parser


def _parse(views: Mapping[str, AnyView], view: AnyView, subject: str, rest: Sequence[str]) -> Request | None:
    """Return the request for a view; None if the arguments ask for help, which is then printed.

    Raises: UserError: an option belongs to other views. CycloptsError: an option is wrong in another way.
    """
    try:
        command, bound, _ = _view_app(view, subject).parse_args(rest, exit_on_error=False, print_error=False)
    except cyclopts.UnknownOptionError as error:
        option = "" if error.token is None else error.token.value.split("=")[0]
        if any(option.removeprefix("--") in other.Options.__annotations__ for other in views.values()):
            raise UserError(f"{option}: the view {view.name} has no such option; leave it out") from None
        error.command_chain = ("inspect", subject, view.name)
        raise
    except cyclopts.CycloptsError as error:
        error.command_chain = ("inspect", subject, view.name)
        raise
    request = command(*bound.args, **bound.kwargs)
    return request if isinstance(request, Request) else None


def _show(view: AnyView, subject: str, request: Request) -> None:
    """Compute a view, draw it, and print its result."""
    out, is_run = request.common.out, Path(subject).is_dir()
    check_payload_path(out)
    if request.settings and (is_run or not isinstance(view, ModelView)):
        raise UserError(
            f"{request.settings[0]}: the view {view.name} always uses the run's settings; leave this out"
        )
    device = resolve_device(request.common.device)
    result = _compute(view, subject, request, device)
    picture = {} if out is None else {"picture": str(out)}
    if out is not None:
        write_payload(result, out)
    if request.common.json:
        print_json(result.to_json() | picture)
    else:
        print_sections([*result.sections(), *([[*picture.items()]] if picture else [])])


def _compute(view: AnyView, subject: str, request: Request, device: torch.device) -> Payload:
    """Return the result of a view of a run or of a model before its training."""
    if not isinstance(view, ModelView) or Path(subject).is_dir():
        return compute_view(view, load(subject, device), request.options, request.common.control)
    if request.common.control:
        raise UserError(f"{subject}: a model before training has random weights already: leave out --control")
    model = untrained_model(subject, request.settings, device)
    with ProgressBar(view.progress, before=view.progress) as progress:
        return view.compute_untrained(model, request.options, log, progress)


def _print_help(views: Mapping[str, AnyView]) -> None:
    usage = "Usage: foveal inspect WHAT [VIEW] [OPTIONS] [KEY.SUB=VALUE...]"
    overview = App(name="inspect", help=HELP, usage=usage, version_flags=(), help_epilogue=EXAMPLES)
    overview.group_commands = cyclopts.Group("Views", sort_key=0)
    for view in views.values():
        overview.command(App(name=view.name, help=view.summary))
    overview.help_print([])
