"""Views of a run, from Python and from the command line."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from foveal.config import suggest
from foveal.config.old_names import VIEWS as OLD_VIEWS
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.control import check_has_control, with_control
from foveal.inspection.payload import Payload
from foveal.inspection.registry import VIEWS
from foveal.inspection.view import View
from foveal.tasks.session import Session
from foveal.ui.console import log as console_log
from foveal.ui.progress_bar import ProgressBar
from foveal.ui.wording import reword

AnyView = View[Any]


def all_views() -> Mapping[str, AnyView]:
    """Return all views by name, in alphabetical order."""
    return dict(sorted(VIEWS.items()))


def fitting_views(session: Session) -> tuple[list[AnyView], dict[str, str]]:
    """Return the views that have something to show of a run; and for the other names, why not."""
    reasons = {view: view.fits(session) for view in all_views().values()}
    return [view for view, why in reasons.items() if not why], {
        v.name: why for v, why in reasons.items() if why
    }


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
        raise UserError(f"there is no view {name}{suggest(name, views)}")
    return views[name]


def view_options(view: AnyView, options: Mapping[str, Any]) -> Any:
    """Return the options of a view.

    Raises: UserError: the view has no such option.
    """
    known = [field.name for field in fields(view.Options)]
    for name in options:
        if name not in known:
            hint = suggest(name, known) if known else "; it has no options"
            raise UserError(f"{name}: the view {view.name} has no such option{hint}")
    return view.Options(**options)


def compute_view(
    view: AnyView, session: Session, options: Any, control: bool = False, log: Log = console_log
) -> Payload:
    """Return the payload of a view of a run, and print lines and progress on the way.

    Raises: UserError: the view does not fit the run, an option does not, or the view has no control.
    """
    with ProgressBar(view.progress, before=view.progress) as progress:
        return compute_payload(view, session, options, control, log, progress)


def compute_payload(
    view: AnyView, session: Session, options: Any, control: bool, log: Log, progress: ProgressCallback
) -> Payload:
    """Return the payload of a view of a run. With `control`, the same view of random weights stands beside
    it, and what it costs to remove what the view highlights.

    Raises: UserError: the view does not fit the run, an option does not, or the view has no control.
    """
    if control:
        check_has_control(view)
    if why := view.fits(session):
        names = ", ".join(other.name for other in fitting_views(session)[0])
        raise UserError(f"{session.run.path}: {why}; the views that fit this run: {names}")
    payload = view.compute(session, options, log, progress)
    if not control:
        return _worded(payload)
    random = view.compute(session.with_random_weights(), options, lambda line: None, progress)
    return _worded(with_control(payload, random, view.ablate(session, options, log)))


def _worded(payload: Payload) -> Payload:
    """Return a payload whose texts name what the user has: options, arguments of Python, or fields."""
    facts = tuple((name, reword(value)) for name, value in payload.facts)
    return replace(payload, title=reword(payload.title), facts=facts, caveat=reword(payload.caveat))
