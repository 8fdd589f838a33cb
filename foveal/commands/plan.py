"""`foveal plan PRESET`: the memory, messages and time of a training on many processes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.plan import plan_of_run, plan_on_data
from foveal.api.results.machine_plan import THIS_MACHINE, MachinePlan
from foveal.api.training.options import TrainingOptions
from foveal.config import Config, parse_overrides, preset_names
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.core.whole_number import WholeNumber
from foveal.models.network_registry import NETWORKS
from foveal.plugins.references import resolve_references
from foveal.store.manifest import MANIFEST_FILE
from foveal.store.run import open_run
from foveal.studies.plan.hardware import DEFAULT_HARDWARE, named_hardware
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.plan import make_plan
from foveal.studies.plan.planned_model import sized_task
from foveal.studies.plan.published import all_published
from foveal.studies.plan.report import plan_json, plan_sections
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.registry import open_task, task_of
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
    hardware: str | None = None,
    data: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    price_per_hour: float | None = None,
    vocabulary: WholeNumber | None = None,
    classes: WholeNumber | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show what a training of PRESET, of a network for images, or of a run takes on many processes, or on
    this machine.

    Of many processes one is counted: it takes a step without numbers, and without the others. With --data, or
    --hardware this-machine for a run, a step is measured here.

    Parameters
    ----------
    preset
        A preset, a TOML file of settings, a network such as resnet-50, or a run folder.
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
        The devices: v100-dgx2h, a100, h100, h200 or cpu; h100 if not given. Or this-machine.
    data
        What to train on, on this machine: a path or a name, as for foveal train.
    valid
        Held-out data that select the best weights.
    test
        Held-out data for the reported score.
    price_per_hour
        What a device costs for an hour, in any currency, for the cost of the published training.
    vocabulary
        The number of tokens; if not given, that of the run, data.vocab_size, or that of usual characters.
    classes
        The number of classes of images; if not given, that of the run, of the published network, or 1000.
    json
        Print one JSON object on standard output.
    """
    if price_per_hour is not None and not 0 < price_per_hour < math.inf:
        raise UserError(f"--price-per-hour {price_per_hour:g}: expected an amount above 0")
    layout = Layout(ranks, tp, pp, virtual_stages, ep, fsdp, micro_batches)
    sizes = {"vocabulary": vocabulary, "classes": classes}
    if hardware == THIS_MACHINE or (hardware is None and data is not None):
        _check_alone(layout, sizes | {"price-per-hour": price_per_hour})
        here = _plan_here(preset, overrides, data, valid, test)
        if json:
            print_json(here.to_json())
        else:
            print_sections(here.sections())
        return
    for option, path in (("data", data), ("valid", valid), ("test", test)):
        if path is not None:
            raise UserError(f"--{option}: is read for --hardware {THIS_MACHINE} alone; leave it out")
    given = {size: number for size, number in sizes.items() if number is not None}
    task = sized_task(_task(preset, resolve_references(overrides)), given)
    made = make_plan(task, layout, named_hardware(hardware or DEFAULT_HARDWARE))
    published = all_published().get(preset) if not given and _has_its_model(task.config, preset) else None
    if price_per_hour is not None and (published is None or published.training is None):
        raise UserError(f"--price-per-hour: no training of {preset} with these settings is published")
    if json:
        print_json(plan_json(made, published, price_per_hour))
    else:
        print_sections(plan_sections(preset, made, published, price_per_hour))


def _plan_here(
    name: str, overrides: Sequence[str], data: str | None, valid: str | None, test: str | None
) -> MachinePlan:
    with SignalHandler():
        if data is None:
            return plan_of_run(Path(name), tuple(overrides), None)
        return plan_on_data(data, tuple(overrides), TrainingOptions(model=name, valid=valid, test=test))


def _check_alone(layout: Layout, others: Mapping[str, object]) -> None:
    """Check that no option of other machines is given.

    Raises: UserError: an option is given.
    """
    degrees = [option for option, degree in asdict(layout).items() if degree != getattr(Layout(), option)]
    if option := next(
        iter([*degrees, *(option for option, value in others.items() if value is not None)]), None
    ):
        raise UserError(
            f"--{option.replace('_', '-')}: this machine is measured in one process, on DATA; leave it out"
        )


def _task(name: str, overrides: Sequence[str]) -> Task:
    """Return the task of a preset, a file or a network; that of a run is bound to its processor.

    Raises: UserError or ConfigError: there is none of this name, or a setting does not fit.
    """
    if not (Path(name) / MANIFEST_FILE).exists():
        return task_of(_config(name, overrides))
    run = open_run(name)
    return open_task(run).with_config(from_tables(run.config.model_dump(), parse_overrides(overrides)))


def _config(name: str, overrides: Sequence[str]) -> Config:
    is_network = name in NETWORKS and name not in preset_names()
    return network_config(name, overrides) if is_network else load_config(name, overrides)


def _has_its_model(config: Config, name: str) -> bool:
    """Return whether settings leave the model of a preset or of a network as it is."""
    if name not in all_published():
        return False
    own = _config(name, ())
    sizes = [
        (data.vocab_size, data.context_length, data.max_length, data.image.size, data.image.channels)
        for data in (config.data, own.data)
    ]
    return config.model == own.model and sizes[0] == sizes[1]
