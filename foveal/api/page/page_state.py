"""What the routes of the page share."""

import asyncio
import threading
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import Request
from pydantic import BaseModel, ConfigDict

from foveal.api.page.computations import Computation, Computations
from foveal.api.page.shown_runs import ShownRuns
from foveal.api.page.uploads import Uploads
from foveal.core.errors import UserError
from foveal.inspection.page.encoded import EncodedPayload
from foveal.store.run import open_run

CURVES = "curves"
"""The view that needs no model, which is shown first if the user names no other."""
GONE_AFTER = 0.5
"""Seconds between looks whether the browser is still there."""


class Start(NamedTuple):
    """What the page shows first."""

    run: int = 0
    view: str | None = None
    """A view; if not given, that which says most of the run."""
    beside: int | None = None
    """The number of a second run."""


class ComputeRequest(BaseModel):
    """What the page asks for: a view of a run with options as texts."""

    model_config = ConfigDict(extra="forbid")

    run: int
    view: str
    options: dict[str, str] = {}
    control: bool = False
    """Whether the same view of random weights stands beside it."""


class PageState:
    """The runs, the views that are computed, and the files that the page has sent."""

    def __init__(self, runs: ShownRuns, start: Start, device: str):
        self.runs, self.start, self._device = runs, start, device
        self.computations, self.uploads = Computations(), Uploads()
        self._importing = threading.Lock()
        self._requests: Any = None
        self._first: tuple[ComputeRequest, str, Computation] | None = None
        """The first view, which is computed before it is asked for, with the version of its run."""
        self.early_view: str | None = None
        """The first view if the page need not wait for the list of views."""

    @property
    def requests(self) -> Any:
        """Return what answers requests of views, `ViewRequests`, which imports torch when it is first needed.

        One thread imports it while the others wait. If two did, one might get half of a module.
        """
        with self._importing:
            if self._requests is None:
                from foveal.api.page.view_requests import ViewRequests

                self._requests = ViewRequests(self._device)
        return self._requests

    def list_views(self, number: int) -> dict[str, Any]:
        """Return the views that fit a run, with the fields of their forms, and why others do not.

        Raises: UserError: the run can't be opened. NotThere: there is no such run.
        """
        views: dict[str, Any] = self.requests.list_views(self.runs.path(number), self.start.view)
        return views

    def compute_first(self) -> Computation:
        """Compute the first view of the first run while the browser starts. An error is that of whoever asks
        for the view.

        Curves are there before torch is imported, which is then imported while the browser draws them.
        """
        run, view, beside = self.start
        path = self.runs.path(run)
        if view not in (None, CURVES) or beside is not None or not _has_log_units(path):
            return self.computations.submit(self._compute_first)
        request, self.early_view = ComputeRequest(run=run, view=CURVES), CURVES
        computation = self.computations.submit(partial(self._compute, request))
        self._first = request, self.runs.version(run), computation
        threading.Thread(target=self._open, args=(path, computation), daemon=True).start()
        return computation

    def _open(self, path: Path, first: Computation) -> None:
        """Import torch and open a run after the first view. An error is that of whoever asks for the run's
        views."""
        with suppress(Exception):
            wait({first.result})
            self.requests.session(path)

    def _compute_first(self, computation: Computation) -> EncodedPayload:
        run, view, _ = self.start
        view = self.requests.first_view(self.runs.path(run), view)
        self._first = ComputeRequest(run=run, view=view), self.runs.version(run), computation
        return self._compute(self._first[0], computation)

    def _compute(self, wanted: ComputeRequest, computation: Computation) -> EncodedPayload:
        path, computation.sent = self.runs.path(wanted.run), self.uploads.names()
        if wanted == ComputeRequest(run=wanted.run, view=CURVES) and _has_log_units(path):
            return self._curves(path)
        values = {name: self.uploads.resolve(value) for name, value in wanted.options.items()}
        payload: EncodedPayload = self.requests.compute(
            path, wanted.view, values, wanted.control, computation
        )
        return payload

    def _curves(self, path: Path) -> EncodedPayload:
        """Return the curves of a run without its model."""
        with self._importing:  # it takes a moment, and the page is served meanwhile
            from foveal.api.page.first_view import encoded_curves
        return encoded_curves(path)

    def _submit(self, wanted: ComputeRequest) -> Computation:
        """Return the computation of a view: one that has begun already, or that waits for its turn."""
        first, self._first = self._first, None
        if first is not None and first[:2] == (wanted, self.runs.version(wanted.run)):
            return first[2]
        return self.computations.submit(partial(self._compute, wanted))

    async def computed(self, wanted: ComputeRequest, request: Request) -> tuple[int, list[str]]:
        """Compute a view when its turn comes. Return the number of the result, and the lines of its log.

        Raises: Canceled: the browser went away. UserError: the view can't be computed.
        """
        computation = self._submit(wanted)
        future = asyncio.wrap_future(computation.result)
        while not future.done():
            await asyncio.wait({future}, timeout=GONE_AFTER)
            if not future.done() and await request.is_disconnected():
                computation.is_canceled = True
        return future.result(), computation.notes


def _has_log_units(path: Path) -> bool:
    """Return whether the curves of a run can be drawn without its task."""
    try:
        folder = open_run(path)
    except UserError:
        return False  # who asks for a view gets this error
    return folder.has_log and folder.log_units is not None
