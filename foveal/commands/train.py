"""`foveal train DATA`: from data on disk to a trained run."""

import math
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from torch import nn

from foveal.commands.models import parts_of
from foveal.commands.training_report import train_and_report
from foveal.config import Config, TaskName
from foveal.core.runtime import choose_device, fast_bfloat16, keep_freed_memory
from foveal.core.signals import Signals
from foveal.data.core.prepared_data import NOTHING, Prepared
from foveal.data.core.split_data import Part
from foveal.data.images.image_examples import Pictures
from foveal.inspection.contact_sheet import contact_sheet
from foveal.store import durable
from foveal.store.run import check_outside, check_place, default_path, open_run
from foveal.tasks.configure import configured
from foveal.tasks.session import (
    Given,
    begin_from,
    build_model,
    build_task,
    fit_first,
    inputs_for,
    kind_of,
    new_run,
    settle,
    training_order,
)
from foveal.training.dry_run import Preflight, preflight
from foveal.training.plan import counted_steps, parse_budget
from foveal.training.protocols import Batches
from foveal.ui.console import duration, facts_table, say, size

SHEET = "contact_sheet.png"


def train(
    data: str,
    /,
    *overrides: str,
    task: TaskName | None = None,
    model: str | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    valid: str | None = None,
    test: str | None = None,
    run: Path | None = None,
    budget: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a model on DATA: text, pairs, labelled texts, series or pictures, captions, or a named data set.

    Parameters
    ----------
    data
        An existing path (any text, a folder of texts, a table .jsonl .csv .tsv .parquet, .conllu .conll, a
        folder of recordings with metadata.csv, series .ts .npz, a folder or zip of pictures by class or with
        metadata.csv), two aligned files as `a.en,b.de`, else a name from `foveal data list`.
    overrides
        Settings over the preset's: key.sub=value, such as model.width=256 optimizer.rate=1e-3; of a table's
        columns data.column, data.label, data.source, data.target.
    task
        What to learn; the model's, or seen from DATA and the settings that name its columns.
    model
        A preset or network from `foveal models`, or the path of a TOML file; the task's own, or what --from
        is, if not given.
    from_
        A run whose weights and tokenizer to start from; for another task or other labels its encoder's.
    valid
        Held-out data that chooses the best weights; nothing is then cut from DATA.
    test
        Held-out data for the reported figure; nothing is then cut from DATA.
    run
        The folder to make; runs/DATA-MODEL-N if not given.
    budget
        How long to train: 90s, 3m, 2h, 2000steps, 5epochs, 10Mtokens.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the result on standard output.
    """
    first = None if from_ is None else open_run(from_)
    config, preset = configured(data, overrides, task, model, first, budget)
    chosen = choose_device(device)
    config = settle(config, chosen)
    folder = run or default_path(data, model or (from_ or Path(preset)).name)
    check_place(folder)
    check_outside(folder, data, valid, test)
    with Signals() as signals:
        given = Given(data, valid, test)
        inputs, taken = (None, NOTHING) if first is None else inputs_for(first, config)
        prepared = kind_of(config).prepare(config, given, say, inputs, taken)
        keep_freed_memory()
        network, origin = build_model(config, prepared.inputs, chosen), preset
        begun = fit_first(config, network, prepared, taken=first is not None) or first is not None
        if first is not None:
            whole = begin_from(first, config, prepared.inputs, network)
            origin = f"all weights of {from_}" if whole else f"the encoder of {from_}; the head is new"
        _announce(data, config, origin, folder, prepared, network)
        if run is None and folder.exists():
            folder = default_path(data, model or (from_ or Path(preset)).name)
            say(f"another training has taken that place: this run is {folder}")
        opened = new_run(folder, config, prepared, given, preset, str(chosen), network if begun else None)
        if _pictured(prepared):
            sheet = contact_sheet(prepared.train.examples, training_order(config, prepared.train))
            durable.replace_file(folder / SHEET, sheet)
        train_and_report(opened, network, prepared, signals, json)


def _pictured(prepared: Prepared[Any, Any]) -> bool:
    """Whether a sheet can show what there is to train on."""
    return isinstance(prepared.train, Part) and isinstance(prepared.train.examples, Pictures)


def _announce(
    data: str, config: Config, origin: str, folder: Path, prepared: Prepared[Any, Any], network: nn.Module
) -> None:
    """What was decided and what it will cost, before anything is spent on it."""
    kind, facts = kind_of(config), prepared.facts["parts"]
    told = kind.describe(config, prepared)
    order = training_order(config, prepared.train)
    task = build_task(config, network, prepared.inputs)
    first = preflight(network, task, order.batch(0, 0), config)
    step = first.seconds * config.training.accumulate + first.update
    parts = ", ".join(f"{name} {kind.amount(part)}" for name, part in facts.items())
    outcomes = told.outcomes
    unit = "of the reward missed," if config.task.signal == "reinforce" else "nats"
    expected = "" if outcomes is None else f"; ln {outcomes} = {math.log(outcomes):.3f} expected"
    aside = [("set aside", _set_aside(prepared, folder))] if prepared.aside else []
    pictures = [("pictures", f"{folder / SHEET}: as they are, and as the model is fed them")]
    facts_table(
        [
            ("data", f"{data}: {told.data}: {parts}"),
            *aside,
            ("task", told.task),
            ("model", f"{origin}: {_model(config, network)}"),
            ("first loss", f"{first.loss:.3f} {unit} measured{expected}"),
            ("cost", _cost(config, order, first, step, told.unit)),
            *(pictures if _pictured(prepared) else []),
            ("run", f"{folder}  (budget {config.training.budget}, {config.training.precision})"),
        ]
    )
    steps, rising = _steps(config, order, step), config.schedule.warmup
    timed = parse_budget(config.training.budget).unit == "seconds"
    if steps < 2 * rising and (timed or config.schedule.name != "one-cycle"):
        say(f"about {steps:,} steps, and the rate rises in {rising} of them: lower schedule.warmup")
    if config.training.precision == "bfloat16" and not fast_bfloat16(next(network.parameters()).device):
        say("no bfloat16 arithmetic here: training.precision=float32 is several times faster")


def _set_aside(prepared: Prepared[Any, Any], folder: Path) -> str:
    first, count = prepared.aside[0], len(prepared.aside)
    return f"{count:,} rows, all in {folder / 'set_aside.jsonl'}; the first: {first.place}: {first.why}"


def _model(config: Config, network: nn.Module) -> str:
    parameters = sum(parameter.numel() for parameter in network.parameters())
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    some = f", {trained:,} of them trained" if trained < parameters else ""
    return f"{', '.join(map(str, parts_of(config)))}; {parameters:,} parameters{some}"


def _cost(config: Config, order: Batches, first: Preflight, step: float, unit: str) -> str:
    """Memory and time, from one measured step."""
    tokens = order.batch(0, 0).tokens * config.training.accumulate
    epoch = step * order.per_epoch / config.training.accumulate
    return (
        f"about {size(first.bytes)} of memory; {1000 * step:.0f} ms a step of {tokens:,} {unit}; "
        f"{duration(epoch)} an epoch; {duration(step * _steps(config, order, step))} without evaluations"
    )


def _steps(config: Config, order: Batches, step: float) -> int:
    """About how many steps of so many seconds the budget is."""
    budget, accumulate = parse_budget(config.training.budget), config.training.accumulate
    if budget.unit == "seconds":
        return max(1, round(budget.amount / step))
    return counted_steps(budget, order.per_epoch, accumulate, order.batch(0, 0).tokens * accumulate)
