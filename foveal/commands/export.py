"""`foveal export RUN FOLDER`: write a run as a Hugging Face model folder."""

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
    """Write RUN, a model whose mixers are all attention, mamba or rwkv, to FOLDER for transformers.

    Parameters
    ----------
    run
        The run folder.
    folder
        The folder to create.
    json
        Print one JSON object with the created files on standard output.
    """
    with SignalHandler():
        session = load(run)
        if not session.task.exports:
            raise UserError(f"{run}: only language models can be exported")
        files = tokenizer_files(session.processor)
        model_type = write_language_model(
            folder, session.model, session.config.model, session.config.data.context_length, files
        )
    names = sorted(path.name for path in folder.iterdir())
    print_facts(
        [
            ("model", f"{model_type}: {', '.join(names)}"),
            ("folder", str(folder)),
            ("in Python", f'transformers.AutoModelForCausalLM.from_pretrained("{folder}")'),
        ]
    )
    if json:
        print_json({"folder": str(folder), "model_type": model_type, "files": names})
