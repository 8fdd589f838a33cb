"""`foveal export RUN FOLDER`: write a run as a model folder of Hugging Face's."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.interop.huggingface.language_models import write_language_model
from foveal.interop.huggingface.tokenizer import tokenizer_files
from foveal.tasks.session import load
from foveal.ui.console import print_facts, print_json


def export(run: Path, folder: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Write RUN, a model of attention, mamba or rwkv alone, to FOLDER for Hugging Face's transformers.

    Parameters
    ----------
    run
        The run folder.
    folder
        The folder to make.
    json
        Print one JSON object with what was made on standard output.
    """
    with SignalHandler():
        loaded = load(run)
        if not loaded.task.exports:
            raise UserError(f"{run}: only language models have a form of Hugging Face's to be written in")
        files = tokenizer_files(loaded.processor)
        kind = write_language_model(
            folder, loaded.model, loaded.config.model, loaded.config.data.context_length, files
        )
    names = sorted(path.name for path in folder.iterdir())
    print_facts(
        [
            ("model", f"{kind}: {', '.join(names)}"),
            ("folder", str(folder)),
            ("in Python", f'transformers.AutoModelForCausalLM.from_pretrained("{folder}")'),
        ]
    )
    if json:
        print_json({"folder": str(folder), "model_type": kind, "files": names})
