"""`foveal plan PRESET`: the memory, messages and time of a training on many processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.config import Config, parse_overrides, preset_names
from foveal.core.errors import UserError
from foveal.core.whole_number import WholeNumber
from foveal.plugins.references import resolve_references
from foveal.store.manifest import MANIFEST_FILE
from foveal.store.run import open_run
from foveal.studies.plan.hardware import DEFAULT_HARDWARE, named_hardware
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.plan import make_plan
from foveal.studies.plan.published import all_published
from foveal.studies.plan.report import plan_json, plan_sections
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.language_model import vocabulary_of
from foveal.tasks.registry import open_task
from foveal.ui.console import print_json, print_sections


def plan(
    preset: str,
    /,
    *overrides: str,
    ranks: WholeNumber = 1,
    tp: WholeNumber = 1,
    pp: WholeNumber = 1,
    virtual_stages: WholeNumber = 1,
    ep: WholeNumber = 1,
    fsdp: Annotated[bool, Parameter(negative="")] = False,
    micro_batches: WholeNumber = 1,
    hardware: str = DEFAULT_HARDWARE,
    vocabulary: WholeNumber | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show what a training of the language model PRESET, or of a run, takes on many processes.

    One of them is counted here: it takes a step without numbers, and without the others.

    Parameters
    ----------
    preset
        A preset, a TOML file of settings, or a run folder.
    overrides
        Settings, such as data.batch_tokens=1048576.
    ranks
        The number of all processes.
    tp
        Processes that split each layer (tensor parallel).
    pp
        Stages of a pipeline of layers.
    virtual_stages
        Parts of the pipeline in each process.
    ep
        Processes that share the experts.
    fsdp
        The processes share all weights.
    micro_batches
        Micro-batches that a process computes one after another in a step.
    hardware
        The devices: v100-dgx2h, a100, h100, h200 or cpu.
    vocabulary
        The number of tokens; if not given, that of the run, data.vocab_size, or 65 characters.
    json
        Print one JSON object on standard output.
    """
    if vocabulary is not None and vocabulary < 1:
        raise UserError(f"--vocabulary {vocabulary}: expected a whole number from 1 on")
    config, size = _config_and_vocabulary(preset, resolve_references(overrides))
    layout = Layout(ranks, tp, pp, virtual_stages, ep, fsdp, micro_batches)
    made = make_plan(config, vocabulary or size, layout, named_hardware(hardware))
    as_published = preset in preset_names() and vocabulary is None and _has_its_model(config, preset)
    published = all_published().get(preset) if as_published else None
    if json:
        print_json(plan_json(made, published))
    else:
        print_sections(plan_sections(preset, made, published))


def _has_its_model(config: Config, preset: str) -> bool:
    """Return whether settings leave the preset's model as it is."""
    own = load_config(preset)
    sizes = [(each.data.vocab_size, each.data.context_length) for each in (config, own)]
    return config.model == own.model and sizes[0] == sizes[1]


def _config_and_vocabulary(name: str, overrides: Sequence[str]) -> tuple[Config, int]:
    """Return the config of a preset, a file or a run, and its number of tokens.

    Raises: UserError or ConfigError: there is none of this name, or a setting does not fit.
    """
    if not (Path(name) / MANIFEST_FILE).exists():
        config = load_config(name, overrides)
        return config, vocabulary_of(config)
    run = open_run(name)
    config = from_tables(run.config.model_dump(), parse_overrides(overrides))
    tokenizer: Any = open_task(run).processor
    return config, int(getattr(tokenizer, "size", 0))
