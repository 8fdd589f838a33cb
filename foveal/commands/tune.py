"""`foveal tune DATA`: the settings of a training, chosen in seven steps."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from foveal.api.training.options import TrainingOptions
from foveal.api.tune import DEFAULT_BUDGET, TuneOptions, tune_chosen
from foveal.core.signals import SignalHandler
from foveal.studies.report_files import check_report_path, write_report
from foveal.studies.tune.report import tune_json, tune_payload, tune_sections
from foveal.ui.console import print_json, print_sections


def tune(
    data: str,
    /,
    *overrides: str,
    task: str | None = None,
    model: str | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    budget: Annotated[str, Parameter(allow_leading_hyphen=True)] = DEFAULT_BUDGET,
    search: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    lr: float | None = None,
    batch: int | None = None,
    seed: int | None = None,
    pretrained: Literal["auto", "no"] = "auto",
    device: str = "auto",
    run: Path | None = None,
    out: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Choose the settings of a training on DATA in seven steps, and say why.

    The steps are the first loss against that of a guess, a few rows that are overfitted, a sweep of learning
    rates, coarse trials, refined trials, their curves, and again while the budget lasts.

    Parameters
    ----------
    data
        A path or a name, as for foveal train.
    overrides
        The settings to start from: key.sub=value, such as optimizer.lr=0.1.
    task
        What is to be learned; if not given, what fits DATA.
    model
        A preset or network, or the path of a TOML file; if not given, what fits DATA.
    from_
        A run to start from, or published weights: minilm or lite0.
    text
        The column of texts, or of sources if --target is given.
    label
        The column of labels.
    target
        The column of target texts.
    valid
        Held-out data by which settings are chosen.
    test
        Held-out data that no trial sees.
    budget
        The time of the whole study: 20m, 2h.
    search
        A setting to search, such as optimizer.lr; may be repeated; all that usually matter if not given.
    lr
        The learning rate to start from.
    batch
        The images or series in a batch, or else the tokens, words or frames.
    seed
        The seed of the trials.
    pretrained
        auto starts from published weights where DATA are few; no never does.
    device
        cpu, cuda, mps, or auto.
    run
        The folder of the study; runs/DATA-tune-N if not given. A study that was stopped goes on there.
    out
        Another file for the report: .html, .json, .png, .svg or .pdf.
    json
        Print one JSON object on standard output.
    """
    check_report_path(out)
    options = TrainingOptions(
        task=task,
        model=model,
        start_from=from_,
        text=text,
        label=label,
        target=target,
        valid=valid,
        test=test,
        lr=lr,
        batch=batch,
        seed=seed,
        pretrained=pretrained,
        device=device,
    )
    with SignalHandler() as signals:
        tuning = tune_chosen(data, overrides, options, TuneOptions(budget, search, run), signals)
        if out is not None:
            write_report(tune_payload(tuning), out)
    if json:
        print_json(tune_json(tuning))
    else:
        print_sections(tune_sections(tuning))
