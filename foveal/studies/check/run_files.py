"""The laws of what a run keeps: sealed files, a config, a processor, and weights that fit together."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from foveal import __version__
from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.data.core.split_data import evenly_spaced
from foveal.data.text.tokenizer_base import Tokenizer
from foveal.laws.law import LawBroken, require
from foveal.store.checkpoint import verified_checkpoint
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import check_finite, check_tensors, open_tensors, unique_state_dict
from foveal.studies.check.law import Law, law_of_run
from foveal.tasks.base import Task
from foveal.tasks.read_settings import config_to_toml

MAX_TEXTS, MAX_TOKENS = 200, 2000
"""Texts of the data, and tokens of a running text, that are encoded and decoded."""


def laws_of_files(run: RunFolder) -> Iterator[Law]:
    """Yield the laws of the files of a run. Its config and processor were verified when it was opened."""
    reason = "" if run.weights.is_file() else "there are no weights yet"
    yield law_of_run("the weights are sealed and finite", partial(_weights, run), reason)
    reason = "" if list_checkpoints(run.checkpoints) else "there is no checkpoint"
    yield law_of_run("checkpoints are sealed and complete", partial(_checkpoints, run), reason)
    made = run.manifest["foveal"]
    reason = "" if made == __version__ and not run.is_old else f"made by version {made}"
    reason = "it has the settings of foveal.Trainer alone" if run.has_own_module else reason
    yield law_of_run("the config is stored as it is read", partial(_config, run), reason)


def laws_of_processor(run: RunFolder, task: Task, texts: Sequence[str]) -> Iterator[Law]:
    """Yield the laws of a run's processor, to which the task is bound. `texts` are some of its data."""
    reason = "made by an older version" if run.is_old else ""
    yield law_of_run("it is stored as it is used", partial(_stored, run, task), reason)
    reason = "" if run.weights.is_file() else "there are no weights yet"
    yield law_of_run("its sizes fit the weights", partial(_fits, run, task), reason)
    tokenizers = tokenizers_of(task.processor)
    reason = "" if tokenizers else "it has no tokenizer"
    yield Law(
        "it decodes what it encodes", lambda path, length: check_round_trip(tokenizers, texts), reason=reason
    )
    if task.labels:
        yield law_of_run("each label has its own number", partial(_labels, task))


def texts_of(data: Any) -> list[str]:
    """Return some texts of a training split; none if it has other sources."""
    sources = getattr(data, "sources", None)
    if sources is None or not len(sources):
        return []
    return [text for row in evenly_spaced(len(sources), MAX_TEXTS) if isinstance(text := sources[row], str)]


def tokenizers_of(processor: Any) -> list[Tokenizer]:
    """Return the tokenizers of a processor, each once."""
    parts = [processor, getattr(processor, "source", None), getattr(processor, "target", None)]
    parts += [getattr(part, name, None) for part in parts[1:] for name in ("tokenizer", "text")]
    unique = {id(part): part for part in parts if isinstance(part, Tokenizer)}
    return [*unique.values()]


def _weights(run: RunFolder) -> None:
    tensors, _ = open_tensors(read_regular(run.weights), run.weights.name)
    check_finite(tensors, run.weights.name)


def _checkpoints(run: RunFolder) -> None:
    for path in list_checkpoints(run.checkpoints):
        verified_checkpoint(path)


def _config(run: RunFolder) -> None:
    stored = read_regular(run.path / "config.toml").decode()
    require(config_to_toml(run.config) == stored, "config.toml is not what its settings are written as")


def _stored(run: RunFolder, task: Task) -> None:
    """Check that the processor would be stored as it was.

    Raises: LawBroken: a file would have another content.
    """
    for name, content in task.processor_files().items():
        path = run.processor_folder / name
        require(path.is_file() and read_regular(path) == content, f"inputs/{name} would be stored otherwise")


def _fits(run: RunFolder, task: Task) -> None:
    """Check that the model of the config and the processor has the names and shapes of the weights.

    Raises: LawBroken: it has others.
    """
    tensors, _ = open_tensors(read_regular(run.weights), run.weights.name)
    with shapes_only():
        model: nn.Module = task.new_model()
    try:
        check_tensors(unique_state_dict(model), task.adapt_weights(tensors), run.weights.name)
    except UserError as error:
        raise LawBroken(str(error)) from None


def check_round_trip(tokenizers: Sequence[Tokenizer], texts: Sequence[str]) -> None:
    """Check that a text of tokens is encoded to tokens of the same text.

    Raises: LawBroken: it is encoded to other tokens.
    """
    for tokenizer in tokenizers:
        each = [tokenizer.encode_known(text)[0][:MAX_TOKENS] for text in texts]
        for number, ids in enumerate([*each, torch.arange(min(tokenizer.size, MAX_TOKENS)).numpy()]):
            text = tokenizer.decode(ids)
            again = tokenizer.decode(tokenizer.encode_known(text)[0])
            if again != text and tokenizer.keeps_spaces:
                place = next(
                    i for i, (a, b) in enumerate(zip(f"{text}\0", f"{again}\0", strict=False)) if a != b
                )
                change = f"{text[place : place + 10]!r} becomes {again[place : place + 10]!r}"
                where = f"text {number}" if number < len(each) else "the text of all tokens"
                raise LawBroken(
                    f"a text is decoded as another: {change}", None, f"{where}, character {place}"
                )


def _labels(task: Task) -> None:
    encode = task.processor.target.encode
    for number, label in enumerate(task.labels):
        ids = encode([label])
        right = not isinstance(ids, str) and ids.tolist() == [number]
        require(right, f"the label '{label}' is number {number}, and is encoded as {ids}")
