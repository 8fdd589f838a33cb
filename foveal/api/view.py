"""Views of a run, from Python and from the command line."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from foveal.api.argument_types import check_types
from foveal.config import suggest
from foveal.config.old_names import VIEWS as OLD_VIEWS
from foveal.core.errors import UserError
from foveal.core.log import Log, each_once
from foveal.core.progress import ProgressCallback
from foveal.inspection.control import check_has_control, with_control
from foveal.inspection.payload import Payload
from foveal.inspection.registry import VIEWS
from foveal.inspection.run_protocols import InspectedRun, OwnBatchesTask
from foveal.inspection.view import View
from foveal.store.manifest import MANIFEST_FILE
from foveal.ui.console import log
from foveal.ui.progress_bar import ProgressBar
from foveal.ui.wording import reword

AnyView = View[Any]
MAX_WHOLE_NUMBER = 2**31 - 1
"""Larger ones fit into no tensor's size, and count nothing."""


def all_views() -> Mapping[str, AnyView]:
    """Return all views by name, in alphabetical order."""
    return dict(sorted(VIEWS.items()))


def fitting_views(session: InspectedRun) -> tuple[list[AnyView], dict[str, str]]:
    """Return the views that have something to show of a run; and for the other names, why not."""
    reasons = {view: _why_not(view, session) for view in all_views().values()}
    return [view for view, why in reasons.items() if not why], {
        v.name: why for v, why in reasons.items() if why
    }


def _why_not(view: AnyView, session: InspectedRun) -> str:
    """Return why a view has nothing to show of a run; an empty text if it has."""
    if view.needs_model and isinstance(session.task, OwnBatchesTask) and (why := session.task.why_no_model()):
        return why
    return view.fits(session)


def choose_view(name: str | None) -> AnyView:
    """Return the view with a name, or the default view.

    Raises: UserError: there is no such view.
    """
    views = all_views()
    if name is None:
        return next(view for view in views.values() if view.is_default)
    if name in OLD_VIEWS:
        raise UserError(f"the view {name} is now {OLD_VIEWS[name]}")
    if name not in views:
        if Path(name, MANIFEST_FILE).is_file():
            raise UserError(f"{name}: a run, not a view: --open shows two runs side by side")
        raise UserError(f"there is no view {name}{suggest(name, views)}")
    return views[name]


def view_options(view: AnyView, options: Mapping[str, Any]) -> Any:
    """Return the options of a view. A path may stand for its text, and one text for several.

    Raises: UserError: the view has no such option, or a value has another type than the option.
    """
    known = [field.name for field in fields(view.Options)]
    for name in options:
        if name not in known:
            hint = suggest(name, known) if known else "; it has no options"
            raise UserError(f"{name}: the view {view.name} has no such option{hint}")
    defaults = {field.name: field for field in fields(view.Options)}
    values = {name: _as_option(value, "tuple" in str(defaults[name].type)) for name, value in options.items()}
    check_types(view.Options, values)
    return view.Options(**values)


def _as_option(value: Any, is_several: bool) -> Any:
    """Return a value of Python as the command line gives it."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if is_several and isinstance(value, str | list):
        return (value,) if isinstance(value, str) else tuple(map(str, value))
    return value


def check_numbers(options: Any) -> None:
    """Check that the numbers among a view's options are finite, and of a size that something can have.

    Raises: UserError: a number is not.
    """
    for field in fields(options):
        value, option = getattr(options, field.name), f"--{field.name.rstrip('_').replace('_', '-')}"
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{option} {value}: expected a finite number")
        if isinstance(value, int) and abs(value) > MAX_WHOLE_NUMBER:
            raise UserError(f"{option} {value}: expected a number of at most {MAX_WHOLE_NUMBER:,}")


def compute_view(view: AnyView, session: InspectedRun, options: Any, control: bool = False) -> Payload:
    """Return the payload of a view of a run, and print lines and progress on the way.

    Raises: UserError: the view does not fit the run, an option does not, or the view has no control.
    """
    with ProgressBar(view.progress, before=view.progress) as progress:
        return compute_payload(view, session, options, control, log, progress)


def compute_views(
    views: Sequence[AnyView], session: InspectedRun
) -> Iterator[tuple[AnyView, Payload | UserError]]:
    """Yield each view with its payload for default options, or why there is none. Print which view is next;
    a line that several views print is printed once."""
    log_once = each_once(log)
    for view in views:
        log(f"{view.name}: {view.summary}")
        try:
            with ProgressBar(view.progress, before=view.progress) as progress:
                payload = compute_payload(view, session, view.Options(), False, log_once, progress)
        except UserError as error:
            yield view, error
        else:
            yield view, payload


def compute_payload(
    view: AnyView, session: InspectedRun, options: Any, control: bool, log: Log, progress: ProgressCallback
) -> Payload:
    """Return the payload of a view of a run. With `control`, the same view of random weights stands beside
    it, and what it costs to remove what the view highlights.

    Raises: UserError: the view does not fit the run, an option does not, or the view has no control.
    """
    check_numbers(options)
    if control:
        check_has_control(view)
    if why := _why_not(view, session):
        names = ", ".join(other.name for other in fitting_views(session)[0])
        raise UserError(f"{session.run.path}: {why}; the views that fit this run: {names}")
    random_run = session.with_random_weights() if control else None
    payload = view.compute(session, options, log, progress)
    if random_run is None:
        return worded(payload)
    same = view.control_options(options, payload)
    random = view.compute(random_run, same, lambda line: None, progress)
    return worded(with_control(payload, random, view.ablate(session, options, log)))


def worded(payload: Payload) -> Payload:
    """Return a payload whose texts name what the user has: options, arguments of Python, or fields."""
    facts = tuple((name, reword(value)) for name, value in payload.facts)
    return replace(payload, title=reword(payload.title), facts=facts, caveat=reword(payload.caveat))
