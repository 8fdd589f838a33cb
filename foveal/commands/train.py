"""`foveal train DATA`: from data on disk to a trained run."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foveal.build import build_model, build_task, load_run_weights, new_run, settle, training_order
from foveal.commands.console import duration, facts_table, say, size
from foveal.commands.report import train_and_report, unit_of
from foveal.config import Config, load_config
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device, fast_bfloat16, keep_freed_memory
from foveal.data.order import Streams, Windows
from foveal.data.prepare import Prepared, prepare
from foveal.data.tokenizers import load_tokenizer
from foveal.heads.generate import Generator
from foveal.training.interrupt import Signals
from foveal.training.plan import counted_steps, parse_budget
from foveal.training.preflight import Preflight, preflight
from foveal.training.run import check_place, default_path, open_run


def train(
    data: str,
    /,
    *overrides: str,
    task: Literal["language"] | None = None,
    model: str | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
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
        A preset from `foveal models`, or the path of a TOML file; `demo`, or what --from is, if not given.
    from_
        A run whose weights and tokenizer to start from.
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
    preset = model or ("demo" if first is None else str(first.path / "config.toml"))
    config = load_config(preset, [*overrides, *([f"training.budget={budget}"] if budget else [])])
    parse_budget(config.training.budget)
    if first is not None and config.model != first.config.model:
        raise UserError(
            f"{from_}: its model is not the one asked for: leave out --model and model.* settings"
        )
    chosen = choose_device(device)
    config = settle(config, chosen)
    folder = run or default_path(data, model or (from_ or Path(preset)).name)
    check_place(folder)
    keep_freed_memory()
    with Signals() as signals:
        tokenizer = None if first is None else load_tokenizer(first.inputs / "text")
        prepared = prepare(data, config.data, valid, test, say, tokenizer)
        network = build_model(config, prepared.tokenizer, chosen)
        if first is not None:
            load_run_weights(first, network)
        _announce(data, config, preset, folder, prepared, network)
        opened = new_run(folder, config, prepared, data, valid, test, preset, chosen.type)
        train_and_report(opened, network, prepared, signals, json)


def _announce(
    data: str, config: Config, preset: str, folder: Path, prepared: Prepared, network: Generator
) -> None:
    """What was decided and what it will cost, before anything is spent on it."""
    tokenizer, facts = prepared.tokenizer, prepared.facts["parts"]
    unit, V = unit_of(tokenizer.kind), tokenizer.size
    order = training_order(config, prepared.train)
    task = build_task(config, network, tokenizer)
    first = preflight(network, task, order.batch(0, 0), config.training.precision, config.training.seed)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    step = first.seconds * config.training.accumulate
    parts = ", ".join(f"{name} {_amount(part)}" for name, part in facts.items())
    facts_table(
        [
            ("data", f"{data}: {unit}: {parts}"),
            ("task", f"language model: predict the next of {V:,} {tokenizer.kind} tokens"),
            (
                "model",
                f"{preset}: {config.model.layers} x {config.model.mixers}, width {config.model.width}; "
                f"{parameters:,} parameters",
            ),
            ("first loss", f"{first.loss:.3f} nats measured; ln {V} = {math.log(V):.3f} expected"),
            ("cost", _cost(config, order, first, step)),
            ("run", f"{folder}  (budget {config.training.budget}, {config.training.precision})"),
        ]
    )
    if config.training.precision == "bfloat16" and not fast_bfloat16(next(network.parameters()).device):
        say("no bfloat16 arithmetic here: training.precision=float32 is several times faster")


def _amount(part: dict[str, Any]) -> str:
    tokens, documents = part["tokens"], part["documents"]
    return f"{tokens:,} in {documents:,} documents" if documents > 1 else f"{tokens:,}"


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
