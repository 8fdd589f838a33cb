"""Payloads as one HTML file, which needs neither a server nor the network."""

import base64
import gzip
import hashlib
import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from foveal.inspection.page.encode import encode_payload
from foveal.inspection.page.modules import one_script, style_sheet
from foveal.inspection.payload import Payload

ICON = "data:,"
"""No icon: browsers would ask for one."""
NO_SCRIPT = "The pictures in this file are drawn by its script, which this browser does not run."


class ReportedView(NamedTuple):
    """A view of a report."""

    name: str
    summary: str
    payload: Payload


def report_page(title: str, views: Sequence[ReportedView], reasons: Mapping[str, str]) -> bytes:
    """Return an HTML file with all views. `reasons` says of other views why they are not in it.

    The title of a view that is alone is not said again below that of the page.

    Everything that comes from data, models or file names stands in it as escaped text, or in the packed
    payloads, whose letters end no element. The policy of the file allows this script and this style alone.
    """
    script, style = one_script("report"), style_sheet()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src blob: data:; "
        "base-uri 'none'; form-action 'none'"
    )
    sections = "\n".join(
        _section(number, view, title if len(views) == 1 else "") for number, view in enumerate(views)
    )
    stored = "\n".join(
        chain.from_iterable(_stored(number, view.payload) for number, view in enumerate(views))
    )
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{ICON}">
<title>{html.escape(_plain(title))}</title>
<style>{style}</style>
</head>
<body>
<div class="page">
<header class="page-head"><h1><bdi>{html.escape(_plain(title))}</bdi></h1></header>
<div class="{"with-views" if len(views) + len(reasons) > 1 else "one-view"}">
{_navigation(views, reasons) if len(views) + len(reasons) > 1 else ""}
<main>
<noscript><p class="error">{NO_SCRIPT}</p></noscript>
{sections}
</main>
</div>
</div>
{stored}
<script type="module">{script}</script>
</body>
</html>
"""
    return page.encode("utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest())
    return f"'sha256-{digest.decode('ascii')}'"


def _plain(text: str) -> str:
    """Return a text without the half characters that UTF-8 can't hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _section(number: int, view: ReportedView, above: str) -> str:
    """Return the place of a view. Below a title that is its own, its name is for those who hear the page."""
    own = view.payload.title
    look = ' class="unseen"' if own == above else ""
    heading = [f"<h2{look}>{html.escape(_plain(view.name))}</h2>"]
    if view.summary:
        heading.append(f'<p class="view-summary">{html.escape(_plain(view.summary))}</p>')
    if own != above:
        heading.append(f'<p class="payload-title"><bdi>{html.escape(_plain(own))}</bdi></p>')
    start = f'<section class="view-section" id="view-{number}" data-payload="{number}">'
    return "\n".join([start, *heading, "</section>"])


def _navigation(views: Sequence[ReportedView], reasons: Mapping[str, str]) -> str:
    """Return links to the views, and the reasons why others are missing."""
    links = "".join(
        f'<li><a href="#view-{number}">{html.escape(_plain(view.name))}</a></li>'
        for number, view in enumerate(views)
    )
    missing = "".join(
        f"<li><bdi>{html.escape(_plain(name))}: {html.escape(_plain(why))}</bdi></li>"
        for name, why in reasons.items()
    )
    others = f"<details><summary>Not in this report</summary><ul>{missing}</ul></details>" if reasons else ""
    return f'<nav class="views" aria-label="Views"><ul>{links}</ul>{others}</nav>'


def _stored(number: int, payload: Payload) -> Iterator[str]:
    """Yield the elements that hold a payload: its header with small arrays, and each large array."""
    encoded = encode_payload(payload)
    yield _element(f"payload-{number}", encoded.content)
    for blob, content in enumerate(encoded.blobs):
        yield _element(f"payload-{number}-{blob}", content())


def _element(name: str, content: bytes) -> str:
    packed = base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode("ascii")
    return f'<script type="application/gzip" id="{name}">{packed}</script>'
