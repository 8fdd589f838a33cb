"""The server of the page: its routes, its headers, and whom it refuses."""

import json
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from fastapi.testclient import TestClient

from foveal.api.page import uploads as uploads_module
from foveal.api.page import view_requests
from foveal.api.page.app import page_app
from foveal.api.page.computations import Canceled, Computation, Computations
from foveal.api.page.listener import Listener
from foveal.api.page.page_state import PageState, Start
from foveal.api.page.security import OnlyOwnPages
from foveal.api.page.shown_runs import ShownRuns
from foveal.api.page.view_options import option_fields, parse_options
from foveal.core.errors import UserError
from foveal.inspection.page import arrays
from foveal.inspection.page.encode import encode_payload
from foveal.inspection.payload import Payload
from foveal.inspection.view import View
from tests.support.payloads import payload

HOST, TOKEN = "127.0.0.1:8237", "secret"


@dataclass(frozen=True)
class DemoOptions:
    data: str | None = None
    """Other data."""
    row: int = 3
    """The row."""
    kind: Literal["plain", "fails", "breaks", "names", "key", "index"] = "plain"
    """What happens."""
    large: bool = False
    """Whether it is large."""


class DemoView(View[DemoOptions]):
    name = "demo"
    summary = "A view of the tests."
    Options = DemoOptions
    progress = "rows shown"

    def fits(self, run: Any) -> str:
        return ""

    def compute(self, run: Any, options: DemoOptions, log: Any, progress: Any) -> Payload:
        log(f"row {options.row} of {options.data}")
        progress(1, 2)
        if options.kind == "fails":
            raise UserError("there is no such\nrow")
        if options.kind == "names":
            raise UserError("--row 99: name another with --data")
        if options.kind in ("key", "index"):
            raise {"key": KeyError, "index": IndexError}[options.kind](1)
        if options.kind == "breaks":
            raise ZeroDivisionError("division by zero")
        return payload()


class DemoSession:
    """A run of which the view needs nothing."""

    class run:  # noqa: N801
        path = "run"


def compute_without_run(
    view: Any, session: Any, options: Any, control: bool, log: Any, progress: Any
) -> Payload:
    assert not control
    result: Payload = view.compute(session, options, log, progress)
    return result


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageState]:
    view = DemoView()
    monkeypatch.setattr(view_requests, "choose_view", lambda name: view)
    monkeypatch.setattr(view_requests, "fitting_views", lambda session: ([view], {"other": "does not fit"}))
    monkeypatch.setattr(view_requests, "compute_payload", compute_without_run)
    monkeypatch.setattr(view_requests.ViewRequests, "session", lambda requests, path: DemoSession())
    (tmp_path / "run").mkdir()
    one = PageState(ShownRuns([tmp_path / "run"]), Start(), "cpu")
    yield one
    one.uploads.clean_up()


@pytest.fixture
def client(state: PageState) -> Iterator[TestClient]:
    app = OnlyOwnPages(page_app(state), 8237, TOKEN)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as one:
        yield one


def compute(client: TestClient, **options: str) -> Any:
    return client.post(f"/{TOKEN}/api/compute", json={"run": 0, "view": "demo", "options": options})


def test_a_view_is_computed_and_fetched(client: TestClient) -> None:
    answer = compute(client, row="7", data="x.csv").json()
    assert answer["notes"] == ["row 7 of x.csv"]
    content = client.get(f"/{TOKEN}/api/results/{answer['result']}").content
    assert content == encode_payload(payload()).content
    assert struct.unpack("<Q", content[:8])[0] % 8 == 0
    assert client.get(f"/{TOKEN}/api/progress").json() == {"running": False}


def test_errors_are_one_line(client: TestClient) -> None:
    assert (compute(client, kind="fails").status_code, compute(client, kind="fails").json()) == (
        400,
        {"error": "there is no such row"},
    )
    broken = compute(client, kind="breaks")
    assert (broken.status_code, "ZeroDivisionError: division" in broken.json()["error"]) == (500, True)
    assert "row" in compute(client, row="x").json()["error"]
    assert "no such option" in compute(client, rows="1").json()["error"]
    assert client.get(f"/{TOKEN}/api/results/99").status_code == 404
    assert client.get(f"/{TOKEN}/api/runs/5/views").status_code == 404
    assert client.get(f"/{TOKEN}/api/runs/-1/views").status_code == 404
    assert client.get(f"/{TOKEN}/static/../app.py").status_code == 404
    assert compute(client).status_code == 200, "the thread goes on after errors"


def test_views_and_their_forms(client: TestClient) -> None:
    answer = client.get(f"/{TOKEN}/api/runs/0/views").json()
    assert answer["others"] == {"other": "does not fit"}
    assert (answer["first"], answer["views"][0]["has_control"]) == ("demo", True)
    fields = {one["name"]: one for one in answer["views"][0]["fields"]}
    assert [(one["name"], one["kind"], one["default"]) for one in fields.values()] == [
        ("data", "text", ""),
        ("row", "number", "3"),
        ("kind", "choice", "plain"),
        ("large", "switch", "false"),
    ]
    assert fields["data"]["takes_file"]
    assert fields["data"]["is_input"]
    assert fields["row"]["help"] == "The row."
    assert parse_options(DemoView(), {"large": "true", "row": "", "data": "--row"}) == DemoOptions(
        "--row", large=True
    )
    assert option_fields(DemoView())[2].choices[:3] == ["plain", "fails", "breaks"]


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/runs", "/nothing"])
def test_every_answer_has_a_strict_policy(client: TestClient, path: str) -> None:
    headers = client.get(f"/{TOKEN}{path}").headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (f"/{TOKEN}/", {}, 200),
        (f"/{TOKEN}/", {"host": "localhost:8237", "origin": "http://localhost:8237"}, 200),
        ("/", {}, 404),
        ("/wrong/", {}, 404),
        (f"/{TOKEN[:-1]}/", {}, 404),
        (f"/{TOKEN}/", {"host": "evil.example:8237"}, 403),
        (f"/{TOKEN}/", {"host": "127.0.0.1"}, 403),
        (f"/{TOKEN}/", {"host": "127.0.0.1:8238"}, 403),
        (f"/{TOKEN}/", {"host": "127.0.0.1:8237.evil.example"}, 403),
        (f"/{TOKEN}/", {"origin": "http://evil.example"}, 403),
        (f"/{TOKEN}/", {"origin": "null"}, 403),
        (f"/{TOKEN}/", {"origin": "https://127.0.0.1:8237"}, 403),
        (f"/{TOKEN}/", {"sec-fetch-site": "cross-site"}, 403),
        (f"/{TOKEN}/", {"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_only_own_pages_are_answered(
    client: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status
    assert "content-security-policy" in answer.headers
    if status != 200:
        assert answer.content == b""


def test_a_file_is_sent(client: TestClient, state: PageState, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = client.post(f"/{TOKEN}/api/files?name=../../a%20b%00.png", content=b"pixels").json()
    path = Path(state.uploads.resolve(sent["value"]))
    assert path.name == "a_b_.png"
    assert path.read_bytes() == b"pixels"
    assert compute(client, data=sent["value"]).json()["notes"] == ["row 3 of a_b_.png"]
    monkeypatch.setattr(uploads_module, "MAX_BYTES", 5)
    refused = client.post(f"/{TOKEN}/api/files?name=b.png", content=b"pixels")
    assert (refused.status_code, "larger than" in refused.json()["error"]) == (400, True)
    assert "choose it again" in compute(client, data="upload:9").json()["error"]


def test_one_view_at_a_time_and_a_canceled_one_ends() -> None:
    computations, gate, order = Computations(), threading.Event(), []

    def slow(one: Computation) -> Any:
        gate.wait(5)
        order.append("slow")
        one.progress(1, 2)

    def quick(one: Computation) -> Any:
        order.append("quick")
        return encode_payload(payload())

    first, second = computations.submit(slow), computations.submit(quick)
    first.is_canceled = True
    gate.set()
    assert second.result.result(5) == 1
    assert isinstance(first.result.exception(5), Canceled)
    assert order in (["slow", "quick"], ["quick"])


def test_a_port_in_use() -> None:
    first = Listener()
    port = first.port
    with pytest.raises(UserError, match=f"--port {port}: in use by another program"):
        Listener(port)
    second = Listener()
    assert second.port != port
    assert {one.socket.getsockname()[0] for one in (first, second)} == {"127.0.0.1"}
    first.socket.close()
    second.socket.close()
    for wrong in (-1, 70000):
        with pytest.raises(UserError, match="from 1024 to 65535"):
            Listener(wrong)


def test_numbers_of_the_header_are_finite(client: TestClient) -> None:
    number = compute(client).json()["result"]
    content = client.get(f"/{TOKEN}/api/results/{number}").content
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    assert np.isfinite(header["panels"][0]["high"])


def test_tiles_are_sent_on_demand(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "WHOLE_CELLS", 10)
    number = compute(client).json()["result"]
    blobs = encode_payload(payload()).blobs
    assert len(blobs) > 12
    for place in (0, 5, len(blobs) - 1):
        assert client.get(f"/{TOKEN}/api/results/{number}/{place}").content == blobs[place]()
    assert client.get(f"/{TOKEN}/api/results/{number}/{len(blobs)}").status_code == 404


def test_the_address_and_the_server_need_no_torch() -> None:
    """Its import takes most of the time until the first view, and a browser starts meanwhile."""
    code = (
        "import sys\nimport foveal.cli, foveal.commands.inspect, foveal.tasks.open_logged\n"
        "import foveal.api.page.serve, foveal.api.page.shown_runs\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_first_view_is_computed_before_it_is_asked_for(client: TestClient, state: PageState) -> None:
    """Whoever asks first gets it; the next page has a result of its own. So has one with options."""
    state.compute_first().result.result(60)
    assert [compute(client).json()["result"] for _ in range(2)] == [1, 2]
    state.compute_first()
    assert compute(client, row="7").json()["notes"] == ["row 7 of None"]


def test_a_first_view_of_an_older_state_of_the_run_is_not_shown(
    client: TestClient, state: PageState, tmp_path: Path
) -> None:
    state.compute_first().result.result(60)
    (tmp_path / "run" / "metrics.jsonl").write_text("a line\n")
    assert compute(client).json()["result"] == 2


def test_lines_name_fields_and_sent_files(client: TestClient) -> None:
    sent = client.post(f"/{TOKEN}/api/files?name=cat.png", content=b"pixels").json()
    assert compute(client, data=sent["value"], row="4").json()["notes"] == ["row 4 of cat.png"]
    assert compute(client, kind="names").json() == {"error": "row 99: name another with the field data"}


def test_an_error_of_a_view_is_not_taken_for_one_of_the_page(client: TestClient) -> None:
    for kind in ("key", "index"):
        broken = compute(client, kind=kind)
        assert (broken.status_code, "(an error in Foveal itself)" in broken.json()["error"]) == (500, True)
