"""`foveal evaluate RUN [DATA]`: measure a run on its held-out text, or on other data."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.build import held_out_order, load, prepare_again
from foveal.commands.console import OUTPUT, facts_table, result_line, say
from foveal.commands.report import score_rows, scored
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.data.prepare import prepare_held_out
from foveal.training.evaluate import evaluate as evaluate_batches
from foveal.training.interrupt import Signals


def evaluate(
    run: Path,
    data: str | None = None,
    /,
    *,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure RUN on its test text (validation if it has none), or on all of DATA.

    Parameters
    ----------
    run
        The run folder.
    data
        Other data: a path or a name from `foveal data list`.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the scores on standard output.
    """
    with Signals() as signals:
        loaded = load(run, choose_device(device))
        if data is not None:
            tokens, facts = prepare_held_out(data, loaded.config.data.column, loaded.tokenizer, say)
            split, sizes = data, facts
        else:
            prepared = prepare_again(loaded.run, say)
            split = "valid" if prepared.test is None else "test"
            held_out = prepared.valid if prepared.test is None else prepared.test
            if held_out is None:
                raise UserError(f"{run}: trained without held-out text: name data to measure it on")
            tokens, sizes = held_out, prepared.facts["parts"][split]
        order = held_out_order(loaded.config, tokens)
        precision = loaded.config.training.precision
        scores = evaluate_batches(loaded.model, loaded.task, order, precision=precision, poll=signals.poll)
    amount = f"{sizes['characters']:,} characters, {sizes['tokens']:,} tokens"
    scores = scored(scores)
    if json:
        result_line({"run": str(run), "split": split, "tokens": sizes["tokens"]} | scores)
    else:
        facts_table([("run", str(run)), ("text", f"{split}: {amount}"), *score_rows(split, scores)], OUTPUT)
