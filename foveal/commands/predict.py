"""`foveal predict RUN DATA`: a run's answer for each row of DATA."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.build import kind_of, load
from foveal.commands.console import result_line, say
from foveal.commands.views import with_views
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.training.interrupt import Signals


def predict(
    run: Path,
    data: str,
    /,
    *,
    views: str | None = None,
    scales: str | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write RUN's label, tags or target for each row of DATA, a line each.

    Parameters
    ----------
    run
        The run folder.
    data
        A text file with one source a line, or a table with a column of them; answers in it are not looked at.
    views
        Of a picture: centre, mirrored, or ten (corners and centre, mirrored too), whose answers are averaged.
    scales
        At which of them: 1, or several as 1,1.125,1.25.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    with Signals() as signals:
        loaded = with_views(load(run, choose_device(device)), views, scales)
        config, kind = loaded.config, kind_of(loaded.config)
        found = kind.answer(config, loaded.model, loaded.inputs, data, say, signals.poll)
    if found is None:
        raise UserError(f"{run}: a language model predicts no answers: use foveal generate or evaluate")
    if json:
        answers = [{"source": source, "output": output} for source, output in zip(*found, strict=True)]
        result_line({"run": str(run), "data": data, "predictions": answers})
    else:
        sys.stdout.write("".join(f"{' '.join(output.split())}\n" for output in found[1]))
