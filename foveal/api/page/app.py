"""The routes of the page."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.middleware.gzip import GZipMiddleware

from foveal.api.page.computations import Canceled, Computation, Computations
from foveal.api.page.opened_runs import OpenedRuns
from foveal.api.page.uploads import Uploads
from foveal.api.page.view_options import option_fields, parse_options
from foveal.api.view import choose_view, compute_payload, fitting_views
from foveal.config import ConfigError
from foveal.core.errors import RunFailed, UserError
from foveal.core.finite_json import finite_json
from foveal.inspection.page.encode import EncodedPayload, encode_payload
from foveal.inspection.page.modules import index_page, static_files

OCTETS = "application/octet-stream"
GONE_AFTER = 0.5
"""Seconds between looks whether the browser is still there."""
MAX_OPTIONS, MAX_TEXT = 100, 1_000_000


class ComputeRequest(BaseModel):
    """What the page asks for: a view of a run with options as texts."""

    model_config = ConfigDict(extra="forbid")

    run: int
    view: str
    options: dict[str, str] = {}
    control: bool = False
    """Whether the same view of random weights stands beside it."""


class PageState:
    """What the routes share."""

    def __init__(self, runs: OpenedRuns, start: dict[str, Any]):
        self.runs, self.start = runs, start
        self.computations, self.uploads = Computations(), Uploads()

    async def in_thread(
        self, work: Callable[[Computation], EncodedPayload], request: Request
    ) -> tuple[int, list[str]]:
        """Compute a view when its turn comes. Return the number of the result, and the lines of its log.

        Raises: Canceled: the browser went away.
        """
        computation = self.computations.submit(work)
        future = asyncio.wrap_future(computation.result)
        while not future.done():
            await asyncio.wait({future}, timeout=GONE_AFTER)
            if not future.done() and await request.is_disconnected():
                computation.is_canceled = True
        return future.result(), computation.notes


def page_app(state: PageState) -> FastAPI:
    """Return the application. It has no documentation of itself, which would be fetched from the network."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)
    for kind in (UserError, ConfigError, RunFailed):
        app.add_exception_handler(kind, partial(_answer_error, 400))
    app.add_exception_handler(Canceled, partial(_answer_error, 499))
    app.add_exception_handler(Exception, partial(_answer_error, 500))
    _add_files(app)
    _add_runs(app, state)
    _add_results(app, state)
    return app


async def _answer_error(status: int, request: Request, error: Exception) -> Response:
    """Return an error as one line."""
    line = " ".join(str(error).split())
    if status == 500:
        line = f"{type(error).__name__}: {line} (an error in Foveal itself)"
    return JSONResponse({"error": line.encode("utf-8", "replace").decode("utf-8")}, status)


def _json(content: Any) -> Response:
    return JSONResponse(finite_json(content))


def _add_files(app: FastAPI) -> None:
    @app.get("/")
    async def index() -> Response:
        return Response(index_page(), media_type="text/html")

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        known = static_files().get(name)
        return Response(status_code=404) if known is None else Response(known[1], media_type=known[0])


def _add_runs(app: FastAPI, state: PageState) -> None:
    @app.get("/api/runs")
    def list_all() -> Response:
        summaries = state.runs.summaries()
        rows = [
            vars(row) | {"name": Path(row.run).name, "id": number} for number, row in enumerate(summaries)
        ]
        return _json({"runs": rows} | state.start)

    @app.get("/api/runs/{number}/views")
    def views(number: int) -> Response:
        fitting, reasons = fitting_views(state.runs.session(number))
        rows = [
            {
                "name": view.name,
                "summary": view.summary,
                "fields": [one._asdict() for one in option_fields(view)],
            }
            for view in fitting
        ]
        return _json({"views": rows, "others": reasons})

    @app.get("/api/runs/{number}/version")
    def version(number: int) -> Response:
        return _json({"version": state.runs.version(number)})

    @app.exception_handler(IndexError)
    async def no_run(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "there is no such run; load the page anew"}, 404)


def _add_results(app: FastAPI, state: PageState) -> None:
    @app.post("/api/compute")
    async def compute(wanted: ComputeRequest, request: Request) -> Response:
        work = partial(_compute, state, wanted)
        number, notes = await state.in_thread(work, request)
        return _json({"result": number, "notes": notes})

    @app.get("/api/progress")
    async def progress() -> Response:
        return _json(state.computations.state())

    @app.get("/api/results/{number}")
    async def result(number: int) -> Response:
        return Response(state.computations.result(number).content, media_type=OCTETS)

    @app.get("/api/results/{number}/{blob}")
    def blob(number: int, blob: int) -> Response:
        return Response(state.computations.result(number).blobs[blob](), media_type=OCTETS)

    @app.post("/api/files")
    async def send_file(name: Annotated[str, Query(max_length=1000)], request: Request) -> Response:
        return _json({"value": await state.uploads.save(name, request.stream()), "name": name})

    @app.exception_handler(KeyError)
    async def no_result(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "this result is no longer kept; show the view again"}, 404)


def _compute(state: PageState, wanted: ComputeRequest, computation: Computation) -> EncodedPayload:
    """Return the payload of a view of a run."""
    if len(wanted.options) > MAX_OPTIONS or sum(map(len, wanted.options.values())) > MAX_TEXT:
        raise UserError(f"the options have more than {MAX_TEXT:,} letters; give a shorter text")
    view = choose_view(wanted.view)
    computation.noun = view.progress
    session = state.runs.session(wanted.run)
    values = {name: state.uploads.resolve(value) for name, value in wanted.options.items()}
    options = parse_options(view, values)
    log, progress = computation.notes.append, computation.progress
    return encode_payload(compute_payload(view, session, options, wanted.control, log, progress))
