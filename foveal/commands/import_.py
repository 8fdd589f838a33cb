"""`foveal import FOLDER`: make a run of a model folder of Hugging Face's, or of published weights."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.commands.training_report import command
from foveal.config import StackConfig
from foveal.core.signals import Signals
from foveal.interop.huggingface.language_models import Foreign
from foveal.interop.image_network import COUNTED, ForeignNetwork
from foveal.interop.import_run import import_run
from foveal.store.run import default_path
from foveal.tasks.labeling import some
from foveal.ui.console import facts_table, result_line, say


def import_(
    folder: Path,
    /,
    *,
    run: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Make a run of a model folder of Hugging Face's, or of published weights.

    Parameters
    ----------
    folder
        A gpt2, mamba, rwkv or bert with config.json, model.safetensors and tokenizer.json; a resnet, convnext
        or vit with preprocessor_config.json instead of the last; or the name of published weights, fetched
        once: efficientnet-lite0, which names images by ImageNet's thousand classes (19 MB), or
        all-minilm-l6-v2, a BERT of six layers (91 MB).
    run
        The run folder to make; runs/FOLDER-import-N if not given.
    json
        Print one JSON object with what was made on standard output.
    """
    with Signals():
        made, found = import_run(folder, run or default_path(str(folder.absolute()), "import"), say)
    path = made.path
    rows, sizes = _text_model(found, path) if isinstance(found, Foreign) else _network(found, path)
    facts_table(rows)
    if json:
        result_line({"run": str(path)} | sizes)


Told = tuple[list[tuple[str, str]], dict[str, Any]]
"""Rows of a table, and the same for programs."""


def _text_model(found: Foreign, path: Path) -> Told:
    parameters = sum(tensor.numel() for tensor in found.tensors.values())
    train_on = f"foveal train DATA --from {path}"
    model: StackConfig = found.config
    if found.config.encoder.kind == "none":
        following = [("next", command("generate", path, "--prompt", "Once")), ("", train_on)]
    else:
        model = found.config.encoder
        head = "its own, which guesses masked words" if found.has_head else "none: give it one by training"
        following = [("head", head), ("next", f"{train_on} --task classify")]
    rows = [
        ("model", f"{found.model_type}: {model.layers} x {model.mixers}, width {model.width}"),
        ("weights", f"{parameters:,} parameters, {found.vocabulary:,} tokens"),
        ("run", str(path)),
        *following,
    ]
    sizes = {"parameters": parameters, "vocabulary": found.vocabulary, "context": found.context}
    return rows, {"model_type": found.model_type, **sizes}


def _network(found: ForeignNetwork, path: Path) -> Told:
    parameters = sum(tensor.numel() for name, tensor in found.tensors.items() if not name.endswith(COUNTED))
    encoder = found.model.encoder
    sizes = "" if encoder.kind == "image" else f": {encoder.layers} x {encoder.mixers}, width {encoder.width}"
    rows = [
        ("model", found.name + sizes),
        ("weights", f"{parameters:,} parameters, {some(found.labels)} labels"),
        ("run", str(path)),
        ("next", command("predict", path, "photo.jpg")),
        ("", f"foveal train DATA --from {path}"),
        ("", f"foveal transfer DATA --from {path}"),
    ]
    return rows, {"model_type": found.name, "parameters": parameters, "classes": len(found.labels)}
