"""`foveal import FOLDER`: make a run of a model folder of Hugging Face's."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.commands.console import facts_table, result_line
from foveal.commands.report import command
from foveal.config import StackConfig
from foveal.interop.run import import_run
from foveal.training.interrupt import Signals
from foveal.training.run import default_path


def import_(
    folder: Path,
    /,
    *,
    run: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Make a run of FOLDER, a gpt2, mamba, rwkv or bert with config.json, model.safetensors, tokenizer.json.

    Parameters
    ----------
    folder
        The model folder.
    run
        The run folder to make; runs/FOLDER-import-N if not given.
    json
        Print one JSON object with what was made on standard output.
    """
    with Signals():
        made, found = import_run(folder, run or default_path(str(folder.absolute()), "import"))
    parameters = sum(tensor.numel() for tensor in found.tensors.values())
    train_on = f"foveal train DATA --from {made.path}"
    model: StackConfig = found.config
    if found.config.encoder.kind == "none":
        following = [("next", command("generate", made.path, "--prompt", "Once")), ("", train_on)]
    else:
        model = found.config.encoder
        head = "its own, which guesses masked words" if found.has_head else "none: give it one by training"
        following = [("head", head), ("next", f"{train_on} --task classify")]
    facts_table(
        [
            ("model", f"{found.model_type}: {model.layers} x {model.mixers}, width {model.width}"),
            ("weights", f"{parameters:,} parameters, {found.vocabulary:,} tokens"),
            ("run", str(made.path)),
            *following,
        ]
    )
    if json:
        sizes = {"parameters": parameters, "vocabulary": found.vocabulary, "context": found.context}
        result_line({"run": str(made.path), "model_type": found.model_type} | sizes)
