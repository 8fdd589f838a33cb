"""What the page asks of a run: the views that fit, and the numbers of one. This imports torch."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foveal.api.inspected_run import open_inspected
from foveal.api.page.computations import Computation
from foveal.api.page.page_state import CURVES
from foveal.api.page.page_words import PageWords
from foveal.api.page.shown_runs import version
from foveal.api.page.view_options import option_fields, parse_options
from foveal.api.view import AnyView, all_views, choose_view, compute_payload, fitting_views
from foveal.config import ConfigError
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.inspection.page.encode import encode_payload
from foveal.inspection.page.encoded import EncodedPayload
from foveal.inspection.run_protocols import InspectedRun
from foveal.ui.wording import reworded

MAX_OPTIONS, MAX_TEXT = 100, 1_000_000


class ViewRequests:
    """Answers requests of views. Runs are opened when they are needed, and again when they have changed."""

    def __init__(self, device: str):
        self._device = resolve_device(device)
        all_views()  # imported by one thread alone: others would see a part of them
        self._lock = threading.Lock()
        self._sessions: dict[Path, tuple[object, InspectedRun]] = {}

    def session(self, path: Path) -> InspectedRun:
        """Return a run with its model, read again if it has other weights than before.

        Raises: UserError: the run is damaged, or has no weights yet.
        """
        with self._lock:
            now = version(path)
            opened = self._sessions.get(path)
            if opened is None or opened[0] != now:
                opened = self._sessions[path] = (now, open_inspected(path, self._device))
            return opened[1]

    def list_views(self, path: Path, wanted: str | None) -> dict[str, Any]:
        """Return the views that fit a run, with the fields of their forms; why others do not; and the first.

        Raises: UserError: the run can't be opened.
        """
        fitting, reasons = fitting_views(self.session(path))
        rows = [
            {
                "name": view.name,
                **_form(view),
                "has_control": view.depends_on_weights,
            }
            for view in fitting
        ]
        return {"views": rows, "others": reasons, "first": _first(fitting, wanted)}

    def first_view(self, path: Path, wanted: str | None) -> str:
        """Return the view that is shown first.

        Raises: UserError: the run can't be opened, or no view fits it.
        """
        if first := _first(fitting_views(self.session(path))[0], wanted):
            return first
        raise UserError(f"{path}: no view fits this run")

    def compute(
        self, path: Path, name: str, values: Mapping[str, str], control: bool, computation: Computation
    ) -> EncodedPayload:
        """Return the payload of a view of a run. `values` are the options as texts.

        Raises: UserError: the run can't be opened, there is no such view, or it does not fit the run or the
            options.
        """
        if len(values) > MAX_OPTIONS or sum(map(len, values.values())) > MAX_TEXT:
            raise UserError(f"the options have more than {MAX_TEXT:,} letters; give a shorter text")
        view = choose_view(name)
        computation.noun = view.progress
        words = PageWords({field.name for field in option_fields(view)}, computation.sent)
        with reworded(words):
            try:
                options, session = parse_options(view, values), self.session(path)
                payload = compute_payload(
                    view, session, options, control, computation.log, computation.progress
                )
            except (UserError, ConfigError) as error:
                raise UserError(words(str(error))) from error
        return encode_payload(payload)


def _form(view: AnyView) -> dict[str, Any]:
    """Return the line about a view and the fields of its form, in words of the page."""
    fields = option_fields(view)
    words = PageWords({field.name for field in fields}, {})
    texts = [field._replace(help=words(field.help))._asdict() for field in fields]
    return {"summary": words(view.summary), "fields": texts}


def _first(fitting: Sequence[AnyView], wanted: str | None) -> str | None:
    names = [view.name for view in fitting]
    return next((name for name in (wanted, CURVES, *names) if name in names), None)
