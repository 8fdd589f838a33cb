"""What a view promises, checked on small runs before their training, for `foveal check`."""

import ast
from collections.abc import Iterator
from functools import cache, partial
from inspect import getsource
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import numpy as np
import torch
from PIL import Image

from foveal.core.log import notify
from foveal.core.progress import no_progress
from foveal.data.open import DataPaths
from foveal.inspection.files import payload_file
from foveal.inspection.payload import Payload
from foveal.inspection.view import View
from foveal.laws.law import LawBroken
from foveal.models.network_registry import NETWORKS
from foveal.studies.check.law import Law, law_without_length
from foveal.tasks.config import load_config
from foveal.tasks.configure import network_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import Session, build_model, new_run

EXAMPLES = {
    "a language model": (
        *("attention", "text.txt", "model.width=16", "model.layers=1", "model.attention.heads=2"),
        *("data.context_length=16", "data.batch_tokens=64"),
    ),
    "a classifier of images": ("lenet-5", "images", "data.image.size=32", "data.image.batch_size=8"),
}
"""The preset or network, the data and the settings of each example run."""
DRAWN = (".json", ".svg", ".html")
"""The formats that a payload is written in. The other pictures are drawn by the same code."""


def view_laws(view: View[Any]) -> Iterator[Law]:
    """Yield the laws of a view: its texts, and its payload for each example run that it fits."""
    yield law_without_length("says what it is", lambda: _says_what_it_is(view))
    fitting = {kind: run for kind, run in example_runs().items() if not view.fits(run)}
    if not fitting:
        notify(f"the view {view.name} fits neither {' nor '.join(EXAMPLES)}: its payload is not checked")
    for kind, run in fitting.items():
        yield law_without_length(f"shows {kind}", partial(_shows, view, run))


@cache
def example_runs() -> dict[str, Session]:
    """Return small runs before their training, by what they are. Their data last as long as the process."""
    folder = Path(_folder().name)
    words = ("red", "blue", "green")
    (folder / "text.txt").write_text("".join(f"{n} is {words[n % 3]}.\n" for n in range(300)))
    draw = np.random.default_rng(0)
    for number in range(24):
        path = folder / "images" / words[number % 3] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (32, 32, 3), np.uint8)).save(path)
    return {kind: _example_run(folder, *settings) for kind, settings in EXAMPLES.items()}


@cache
def _folder() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="foveal-")


def _example_run(folder: Path, preset: str, data: str, *settings: str) -> Session:
    config = network_config(preset, settings) if preset in NETWORKS else load_config(preset, settings)
    task, paths = task_of(config), DataPaths(str(folder / data))
    prepared = task.prepare(paths, lambda line: None)
    run = new_run(folder / f"run-{data}", task, prepared, paths, preset)
    task = task.bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, torch.device("cpu")).eval())
    return Session(run, task, task.objective())


def options_without_help(options: type) -> list[str]:
    """Return the fields of a class of options that have no docstring."""
    tree = ast.parse(dedent(getsource(options))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return [
        ast.unparse(field.target)
        for field, below in zip(tree.body, [*tree.body[1:], None], strict=True)
        if isinstance(field, ast.AnnAssign)
        and not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant))
    ]


def _says_what_it_is(view: View[Any]) -> None:
    if "\n" in view.summary or not view.summary.strip():
        raise LawBroken("the summary is one line for the list of views")
    if missing := options_without_help(view.Options):
        raise LawBroken(f"the option {missing[0]} has no help: write a docstring below it")


def _shows(view: View[Any], run: Session) -> None:
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    payload = view.compute(run, view.Options(), lambda line: None, no_progress)
    if not isinstance(payload, Payload):
        raise LawBroken(f"compute returns a Payload, not {type(payload).__name__}")
    if not payload.caveat.strip() or not payload.panels:
        raise LawBroken("a payload has a panel, and a caveat: what the numbers do not say")
    after = run.model.state_dict()
    if run.model.training or not all(torch.equal(tensor, after[name]) for name, tensor in before.items()):
        raise LawBroken("the model is changed by compute: its weights or its mode")
    for suffix in DRAWN:
        payload_file(payload, suffix)
