"""`foveal train DATA`: from data on disk to a trained run."""

import math
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from foveal.build import build_model, build_task, load_run_weights, run_inputs, training_order
from foveal.commands.console import duration, facts_table, say, size
from foveal.commands.report import train_and_report, unit_of
from foveal.config import Config, load_config
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.data.order import Streams, Windows
from foveal.data.prepare import Prepared, prepare
from foveal.heads.generate import Generator
from foveal.training.interrupt import Signals
from foveal.training.plan import counted_steps, parse_budget
from foveal.training.preflight import Preflight, preflight
from foveal.training.run import create_run, default_path, open_run


def train(
    data: str,
    /,
    *overrides: str,
    task: Literal["language"] | None = None,
    model: str = "demo",
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    valid: str | None = None,
    test: str | None = None,
    run: Path | None = None,
    budget: str | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a model on DATA: a text file, a folder, a table with a text column, or a named data set.

    Parameters
    ----------
    data
        An existing path (any text, a folder, .jsonl .csv .tsv .parquet), else a name from `foveal data list`.
    overrides
        Settings over the preset's: key.sub=value, such as model.width=256 optimizer.rate=1e-3.
    task
        What to learn; it is inferred from DATA.
    model
        A preset from `foveal models`, or the path of a TOML file.
    from_
        A run whose weights to start from.
    valid
        Held-out data that chooses the best weights; nothing is then cut from DATA.
    test
        Held-out data for the reported figure; nothing is then cut from DATA.
    run
        The folder to make; runs/<data>-<model>-<n> if not given.
    budget
        How long to train: 90s, 3m, 2h, 2000steps, 5epochs, 10Mtokens.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the result on standard output.
    """
    config = load_config(model, [*overrides, *([f"training.budget={budget}"] if budget else [])])
    parse_budget(config.training.budget)
    chosen = choose_device(device)
    folder = run or default_path(data, model)
    if folder.exists():
        raise UserError(f"{folder} exists: choose another --run, or go on with it: foveal resume {folder}")
    with Signals() as signals:
        prepared = prepare(data, config.data, valid, test, say)
        network = build_model(config, prepared.tokenizer, chosen)
        if from_ is not None:
            load_run_weights(open_run(Path(from_)), network)
        _announce(data, config, model, folder, prepared, network)
        given = {
            "data": _lasting(data),
            "valid": valid and _lasting(valid),
            "test": test and _lasting(test),
            "preset": model,
            "device": chosen.type,
            "facts": prepared.facts,
        }
        inputs = run_inputs(prepared.tokenizer)
        train_and_report(create_run(folder, config, inputs, given), network, prepared, signals, json)


def _lasting(data: str) -> str:
    """A path that means the same from every folder, or a catalogue name as it is."""
    return str(Path(data).absolute()) if Path(data).exists() else data


def _announce(
    data: str, config: Config, preset: str, folder: Path, prepared: Prepared, network: Generator
) -> None:
    """What was decided and what it will cost, before anything is spent on it."""
    tokenizer, facts = prepared.tokenizer, prepared.facts["parts"]
    unit = unit_of(tokenizer.kind)
    order = training_order(config, prepared.train)
    task = build_task(config, network, tokenizer)
    first = preflight(network, task, order.batch(0, 0), config.training.precision, config.training.seed)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    step = first.seconds * config.training.accumulate
    parts = ", ".join(f"{name} {part['tokens']:,}" for name, part in facts.items())
    documents = sum(part["documents"] for part in facts.values())
    facts_table(
        [
            ("data", f"{data}: {documents:,} document{'s' * (documents != 1)}; {unit}: {parts}"),
            ("task", f"language model: predict the next of {tokenizer.size:,} {tokenizer.kind} tokens"),
            (
                "model",
                f"{preset}: {config.model.layers} x {config.model.mixers}, width {config.model.width}; "
                f"{parameters:,} parameters",
            ),
            (
                "first loss",
                f"{first.loss:.3f} nats measured; ln {tokenizer.size} = {math.log(tokenizer.size):.3f} expected",
            ),
            ("cost", _cost(config, order, first, step)),
            ("run", f"{folder}  (budget {config.training.budget}, {config.training.precision})"),
        ]
    )


def _cost(config: Config, order: Streams | Windows, first: Preflight, step: float) -> str:
    """Memory and time, from one measured step."""
    batch = order.batch(0, 0)
    budget = parse_budget(config.training.budget)
    if budget.unit == "seconds":
        total = budget.amount
    else:
        tokens = batch.tokens * config.training.accumulate
        total = step * counted_steps(budget, order.per_epoch, config.training.accumulate, tokens)
    epoch = step * order.per_epoch / config.training.accumulate
    return (
        f"about {size(first.bytes)} of memory; {1000 * step:.0f} ms a step of "
        f"{len(batch.inputs)} x {config.data.context}; {duration(epoch)} an epoch; {duration(total)} in all"
    )
