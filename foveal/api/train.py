"""`foveal.train`: from data on disk or in memory to a trained run."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from foveal.api.arguments import one_or_several
from foveal.api.errors import plain_errors
from foveal.api.interruption import interruptible
from foveal.api.ranks import check_ranks, run_ranks
from foveal.api.run import Run
from foveal.api.training.choose import choose
from foveal.api.training.options import TrainingOptions
from foveal.api.training.prepare import prepare
from foveal.api.training.report import ignore_result
from foveal.api.training.stored import store_training
from foveal.training.callbacks import check_callbacks
from foveal.ui.console import silence


@plain_errors
def train(
    data: Any,
    *,
    model: str | None = None,
    budget: str | None = None,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: Any = None,
    test: Any = None,
    start_from: str | Path | Run | None = None,
    lr: float | None = None,
    batch: int | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    device: str = "auto",
    run: str | Path | None = None,
    ranks: int | None = None,
    pretrained: Literal["auto", "no"] = "auto",
    log: str | Sequence[str] = (),
    callbacks: object = (),
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Train a model on `data`, and return the run. `foveal train` does the same, with the same options.

    Ctrl-C (or "interrupt kernel") ends the training and saves: the run that is returned can be resumed.
    Before there is a run, it is a `KeyboardInterrupt`.

    Raises: UserError: the data can't be read, or a setting does not fit; or `ranks` is below 1, or comes with
        `callbacks`.
    Raises: RunFailed: the training failed: too many steps in a row were not finite, the disk is full, or a
        rank was killed.

    Parameters
    ----------
    data
        What the command takes: a path, two paths `a.en,b.de`, or a name from `foveal data list`. Or values in
        memory: a list of texts, of pairs, of rows (dicts) or of images; a dict of columns; a DataFrame of
        pandas or polars; a `datasets.Dataset`; arrays `(sources, labels)` of NumPy or torch, images (N, H, W)
        or (N, H, W, C) and series (N, T) or (N, T, C); or a torch `Dataset` of such pairs. They are stored
        once as Parquet in the cache under their hash, so that the run resumes exactly.
    model
        A preset, which `foveal models` lists, a network for images, or the path of a TOML file.
    budget
        How long to train: 90s, 3m, 2h, 2000steps, 5epochs, 10Mtokens.
    task
        What to learn; if not given, the model's task, or the one that fits the data.
    text, label, target
        The columns of texts (of sources if `target` is given), of labels, and of target texts.
    valid, test
        Held-out data, as `data`; nothing is then split off from `data`.
    start_from
        A run to start from, or published weights: minilm or lite0.
    lr, batch, epochs, seed
        The highest learning rate; the images or series in a batch, or else the tokens, words or frames; how
        often to train on all data, in place of `budget`; the seed of all that is drawn.
    device
        cpu, cuda, mps, or auto.
    run
        The folder to create; runs/DATA-MODEL-N if not given.
    ranks
        The number of processes on this machine that train together; the weights do not depend on it.
    pretrained
        `auto` starts from published weights where data are few, and fetches them once; `no` never does.
    log
        Where the metrics go beside the run: "tensorboard", "mlflow", "trackio", "wandb", "csv", or several.
    callbacks
        An object with methods of `foveal.Callback`, called after steps, evaluations and checkpoints, or
        several. They are called in this process, so not with `ranks`.
    quiet
        Print nothing but warnings of what changes the result, such as weights that can't be fetched.
    settings
        Other settings by their keys, such as `{"model.width": 256}`.
    """
    checked = check_callbacks(callbacks)
    check_ranks(ranks, bool(checked))
    options = TrainingOptions(
        task=task,
        model=model,
        start_from=base_path(start_from),
        text=text,
        label=label,
        target=target,
        run=None if run is None else Path(run),
        budget=budget,
        epochs=epochs,
        lr=lr,
        batch=batch,
        seed=seed,
        pretrained=pretrained,
        device=device,
        log=one_or_several(log),
    )
    stored = store_training(data, valid, test, options, settings)
    options = replace(stored.options, slots=None if "training.slots" in stored.settings else ranks)
    with silence(quiet), interruptible() as signals:
        prepared = prepare(choose(stored.data, stored.overrides, options))
        prepared.announce(draws_images=True)
        folder = prepared.create_run(stored.number_columns)
        if ranks is None:
            prepared.train(folder, signals, ignore_result, checked)
        else:
            command = [sys.executable, "-m", "foveal", "resume", str(folder.path), "--ranks", str(ranks)]
            run_ranks([*command, *(["-q"] if quiet else [])], folder.path, signals)
    return Run(folder.path, device)


def base_path(start_from: str | Path | Run | None) -> Path | None:
    """Return the path of a run to start from, or the name of published weights."""
    if start_from is None:
        return None
    return start_from.path if isinstance(start_from, Run) else Path(start_from)
