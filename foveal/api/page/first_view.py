"""The view that the page shows while the rest is imported: the curves, which need no model and no torch."""

from dataclasses import fields
from pathlib import Path

from foveal.api.page.page_words import PageWords
from foveal.api.view import worded
from foveal.inspection.curves.view import CurvesOptions, curves_of_folder
from foveal.inspection.page.encode import encode_payload
from foveal.inspection.page.encoded import EncodedPayload
from foveal.store.run import open_run
from foveal.ui.wording import reworded


def encoded_curves(path: Path) -> EncodedPayload:
    """Return the curves of a run that says what its log means, in words of the page.

    Raises: UserError: the run or its log is damaged.
    """
    names = {field.name.rstrip("_") for field in fields(CurvesOptions)}
    with reworded(PageWords(names, {})):
        return encode_payload(worded(curves_of_folder(open_run(path))))
