"""`foveal inspect WHAT [VIEW]`: look inside a run, or inside a model before its training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cyclopts
import torch
from cyclopts import App, Parameter

from foveal import inspection, tasks
from foveal.config import suggest
from foveal.config.old_names import VIEWS as OLD_VIEWS
from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.inspection.base import ModelView, View, ViewResult
from foveal.inspection.registry import find_views
from foveal.store.durable import atomic_write
from foveal.tasks.session import load
from foveal.tasks.untrained_model import untrained_model
from foveal.ui.console import STDOUT, check_png_path, log, print_json, print_sections
from foveal.ui.progress_bar import ProgressBar

HELP_FLAGS = ("--help", "-h")
HELP = (
    "Look inside WHAT: a run folder; or, before any training, a preset, a TOML file, or the name of an image "
    "network. `foveal inspect WHAT VIEW --help` lists the options of a view."
)
EXAMPLES = """Examples:

    foveal inspect runs/photos-image-classification-1 confusion --out confusion.png
    foveal inspect mlp-10 activations --initialization 0.01,0.05,kaiming --out first.png

`--debug` with any command shows the whole traceback of an error."""
AnyView = View[Any, Any]

app = App(name="inspect", help_flags=(), version_flags=())


@dataclass(frozen=True)
class CommonOptions:
    """The options of every view."""

    out: Path | None = None
    """Draw the view into this .png."""
    device: str = "auto"
    """cpu, cuda, or auto."""
    json: Annotated[bool, Parameter(negative="")] = False
    """Print one JSON object on standard output."""


class Request(NamedTuple):
    """The parsed arguments of a view."""

    settings: tuple[str, ...]
    options: Any
    common: CommonOptions


@app.default
def inspect(*tokens: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Look inside a run, or inside a model before its training; the view parses the tokens."""
    views = find_views(inspection, tasks)
    if not tokens or tokens[0] in HELP_FLAGS:
        _print_help(views)
        return
    subject, *rest = tokens
    if subject.startswith("-"):
        raise UserError(f"{subject}: name a run or a model first: foveal inspect WHAT [VIEW] {subject} ...")
    view = _choose_view(views, rest)
    request = _parse(views, view, subject, rest)
    if request is not None:
        with SignalHandler():
            _show(view, subject, request)


def _choose_view(views: Mapping[str, AnyView], rest: list[str]) -> AnyView:
    """Return the view that the first argument names, and remove this argument; else the default view.

    Raises: UserError: there is no such view.
    """
    if not rest or rest[0].startswith("-") or "=" in rest[0]:
        return next(view for view in views.values() if view.is_default)
    name = rest.pop(0)
    if name in OLD_VIEWS:
        raise UserError(f"the view {name} is now {OLD_VIEWS[name]}")
    if name not in views:
        raise UserError(f"there is no view {name}{suggest(name, views)}")
    return views[name]


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
    parser = App(name="inspect", help=view.summary, usage=usage, version_flags=(), console=STDOUT)
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
    check_png_path(out)
    if request.settings and (is_run or not isinstance(view, ModelView)):
        raise UserError(
            f"{request.settings[0]}: the view {view.name} always uses the run's settings; leave this out"
        )
    device = resolve_device(request.common.device)
    with ProgressBar(view.progress, before=view.progress) as progress:
        result = _compute(view, subject, request, device, progress)
    picture = {} if out is None else {"picture": str(out)}
    if out is not None:
        atomic_write(out, view.plot(result))
    if request.common.json:
        print_json(result.to_json() | picture)
    else:
        print_sections([*result.sections(), *([[*picture.items()]] if picture else [])])


def _compute(
    view: AnyView, subject: str, request: Request, device: torch.device, progress: ProgressCallback
) -> ViewResult:
    """Return the result of a view of a run or of a model before its training."""
    if isinstance(view, ModelView) and not Path(subject).is_dir():
        model = untrained_model(subject, request.settings, device)
        return view.compute_untrained(model, request.options, log, progress)
    run = load(subject, device)
    view.check(run)
    return view.compute(run, request.options, log, progress)


def _print_help(views: Mapping[str, AnyView]) -> None:
    usage = "Usage: foveal inspect WHAT [VIEW] [OPTIONS] [KEY.SUB=VALUE...]"
    overview = App(name="inspect", help=HELP, usage=usage, version_flags=(), help_epilogue=EXAMPLES)
    overview.group_commands = cyclopts.Group("Views", sort_key=0)
    for view in views.values():
        overview.command(App(name=view.name, help=view.summary))
    overview.help_print([])
