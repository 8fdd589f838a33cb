"""`foveal evaluate RUN [DATA]`: score a run on its held-out data, or on other data."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.evaluation import evaluate_run, evaluate_shots
from foveal.api.few_shot import PAIR_COLUMNS, few_shot_prompt, pair_columns
from foveal.api.own_module.evaluation import evaluate_module_run
from foveal.api.own_module.run import describe_means
from foveal.api.training.summary import baseline_rows, loss_rows, print_report
from foveal.commands.ranks import launch_to_use, working_together
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.plugins.options import is_trusted
from foveal.store.run import RunFolder, open_run
from foveal.tasks.data_overrides import with_columns
from foveal.tasks.session import Session, load
from foveal.tasks.test_time_views import with_test_time_views
from foveal.ui.console import STDOUT, log, print_facts, print_json


def evaluate(
    run: Path,
    data: str | None = None,
    /,
    *overrides: str,
    tta: str | None = None,
    tta_scales: str | None = None,
    shots: Path | None = None,
    template: str | None = None,
    device: str = "auto",
    ranks: int | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Score RUN on its test data (or its validation data, if it has no test data), or on all of DATA.

    Parameters
    ----------
    run
        The run folder.
    data
        Other data: a path or a name from `foveal data list`.
    overrides
        Names of the columns of DATA, such as data.text=review data.label=mood.
    tta
        Views of an image whose predictions are averaged: none (the center alone), flip (the mirror image,
        too), flip-shift (also shifted by a pixel), or ten-crop (center and corners, and mirror images).
    tta_scales
        The scales of these views: 1, or several such as 1,1.125,1.25.
    shots
        A table of examples, with columns source and target, that a language model reads before each source of
        DATA, a table of pairs whose targets it writes.
    template
        The text of an example, with {source} and {target}; \\n is a line break.
    device
        cpu, cuda, mps, or auto.
    ranks
        The number of processes on this machine that share the batches; the scores are those of one.
    json
        Print one JSON object with the scores on standard output.
    """
    folder = open_run(run)
    alone = "a module of your own is evaluated" if folder.has_own_module else ""
    if launch_to_use(ranks, alone):
        return
    if folder.has_own_module:
        _evaluate_module(folder, device, data, json)
        return
    with working_together(alone) as together:
        session = with_test_time_views(load(run, resolve_device(device)), tta, tta_scales)
        columns = pair_columns(overrides) if shots else PAIR_COLUMNS
        session = session if shots else with_columns(session, overrides)
        session = session.shared_by(together)
        log_calibration(session)
        examples = few_shot_prompt(session.task, str(run), shots, template, columns)
        if examples is None:
            evaluation = evaluate_run(session, data)
        else:
            evaluation = evaluate_shots(session, data, examples, columns)
    if not together.world.is_main:
        return
    if json:
        print_json(evaluation.to_json(session))
    else:
        split, sizes, scores, report, _, baseline = evaluation
        task = session.task
        size = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in sizes.items())
        rows = loss_rows(task, split, scores, report) if baseline is None else baseline_rows(baseline)
        print_facts([("run", str(run)), ("data", f"{split}: {size}"), *rows], STDOUT)
        if report is not None:
            print_report(task, report, STDOUT)


def _evaluate_module(folder: RunFolder, device: str, data: str | None, json: bool) -> None:
    """Score a run of the user's own module on its validation batches.

    Raises: UserError: its code is not trusted or can't be imported, or DATA are given.
    """
    if data is not None:
        raise UserError(f"{data}: batches of {folder.path} come from its own code: leave out DATA")
    with SignalHandler():
        evaluation = evaluate_module_run(folder, resolve_device(device), is_trusted(), log)
    if json:
        print_json({"run": str(folder.path), "split": "valid", "step": evaluation.step} | evaluation.means)
    else:
        rows = [("run", str(folder.path)), ("weights", f"of step {evaluation.step:,}")]
        print_facts([*rows, ("validation", describe_means(evaluation.means))], STDOUT)


def log_calibration(session: Session) -> None:
    """Say that a run is calibrated."""
    if session.temperature != 1:
        log(f"calibrated: probabilities at temperature {session.temperature:.4g} (foveal calibrate)")
