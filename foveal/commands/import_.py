"""`foveal import FOLDER`: create a run from a Hugging Face folder, a GGUF file or published weights."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.api.training.summary import shell_command
from foveal.config import StackConfig
from foveal.core.signals import SignalHandler
from foveal.interop.huggingface.language_models import ImportedTextModel
from foveal.interop.image_network import BATCH_NORM_STATISTICS, ImportedImageNetwork
from foveal.store.run_paths import default_run_path
from foveal.tasks.import_run import import_run
from foveal.tasks.shapes.labeling import summarize_labels
from foveal.ui.console import log, print_facts, print_json


def import_(
    folder: Path,
    /,
    *,
    run: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Create a run from a Hugging Face model folder, a GGUF file, or from published weights.

    Parameters
    ----------
    folder
        A folder with config.json, model.safetensors and tokenizer.json of a gpt2, gemma3_text, mamba, rwkv or
        bert; or of a resnet, convnext or vit with preprocessor_config.json in place of the last file; or a
        GGUF file of a gemma3; or the name of published weights, which are downloaded once:
        efficientnet-lite0, which predicts ImageNet's thousand classes (19 MB), all-minilm-l6-v2, a BERT of
        six layers (91 MB), or gemma3-270m, a language model (238 MB).
    run
        The run folder to create; runs/FOLDER-import-N if not given.
    json
        Print one JSON object about the run on standard output.
    """
    with SignalHandler():
        new_run, model = import_run(folder, run or default_run_path(str(folder.absolute()), "import"), log)
    path = new_run.path
    rows, sizes = (
        _describe_text_model(model, path)
        if isinstance(model, ImportedTextModel)
        else _describe_image_network(model, path)
    )
    print_facts(rows)
    if json:
        print_json({"run": str(path)} | sizes)


RowsAndJson = tuple[list[tuple[str, str]], dict[str, Any]]
"""Rows of a table, and the same for programs."""


def _describe_text_model(imported: ImportedTextModel, path: Path) -> RowsAndJson:
    parameters = sum(tensor.numel() for tensor in imported.tensors.values())
    train_on = f"foveal train DATA --from {path}"
    model: StackConfig = imported.config
    if imported.config.encoder.kind == "none":
        next_steps = [("next", shell_command("generate", path, "--prompt", "Once")), ("", train_on)]
    else:
        model = imported.config.encoder
        head = "its own, which predicts masked words" if imported.has_head else "none: train one"
        next_steps = [("head", head), ("next", f"{train_on} --task TASK")]
    rows = [
        ("model", f"{imported.model_type}: {model.layers} x {model.mixers}, width {model.width}"),
        ("weights", f"{parameters:,} parameters, {imported.vocabulary:,} tokens"),
        ("run", str(path)),
        *next_steps,
    ]
    sizes = {"parameters": parameters, "vocabulary": imported.vocabulary, "context": imported.context}
    return rows, {"model_type": imported.model_type, **sizes}


def _describe_image_network(imported: ImportedImageNetwork, path: Path) -> RowsAndJson:
    parameters = sum(
        tensor.numel()
        for name, tensor in imported.tensors.items()
        if not name.endswith(BATCH_NORM_STATISTICS)
    )
    encoder = imported.model.encoder
    sizes = "" if encoder.kind == "image" else f": {encoder.layers} x {encoder.mixers}, width {encoder.width}"
    rows = [
        ("model", imported.name + sizes),
        ("weights", f"{parameters:,} parameters, {summarize_labels(imported.labels)} labels"),
        ("run", str(path)),
        ("next", shell_command("predict", path, "photo.jpg")),
        ("", f"foveal train DATA --from {path}"),
        ("", f"foveal compare-finetuning DATA --from {path}"),
    ]
    return rows, {"model_type": imported.name, "parameters": parameters, "classes": len(imported.labels)}
