"""The routes of the page."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.middleware.gzip import GZipMiddleware

from foveal.api.page.computations import Canceled, NotThere
from foveal.api.page.page_state import ComputeRequest, PageState
from foveal.config import ConfigError
from foveal.core.errors import RunFailed, UserError
from foveal.core.finite_json import finite_json
from foveal.inspection.page.encoded import EncodedPayload
from foveal.inspection.page.modules import index_page, static_files

OCTETS = "application/octet-stream"


def page_app(state: PageState) -> FastAPI:
    """Return the application. It has no documentation of itself, which would be fetched from the network."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)
    for kind in (UserError, ConfigError, RunFailed):
        app.add_exception_handler(kind, partial(_answer_error, 400))
    app.add_exception_handler(NotThere, partial(_answer_error, 404))
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
        return _json({"runs": rows, "start": state.start._asdict() | {"early": state.early_view}})

    @app.get("/api/runs/{number}/views")
    def views(number: int) -> Response:
        return _json(state.list_views(number))

    @app.get("/api/runs/{number}/version")
    def version(number: int) -> Response:
        return _json({"version": state.runs.version(number)})


def _add_results(app: FastAPI, state: PageState) -> None:
    @app.post("/api/compute")
    async def compute(wanted: ComputeRequest, request: Request) -> Response:
        number, notes = await state.computed(wanted, request)
        return _json({"result": number, "notes": notes})

    @app.get("/api/progress")
    async def progress() -> Response:
        return _json(state.computations.state())

    @app.get("/api/results/{number}")
    async def result(number: int) -> Response:
        return Response(state.computations.result(number).content, media_type=OCTETS)

    @app.get("/api/results/{number}/{blob}")
    def blob(number: int, blob: int) -> Response:
        return Response(_blob(state.computations.result(number), blob), media_type=OCTETS)

    @app.post("/api/files")
    async def send_file(name: Annotated[str, Query(max_length=1000)], request: Request) -> Response:
        return _json({"value": await state.uploads.save(name, request.stream()), "name": name})


def _blob(result: EncodedPayload, number: int) -> bytes:
    if not 0 <= number < len(result.blobs):
        raise NotThere("this result has no such part; show the view again")
    return result.blobs[number]()
