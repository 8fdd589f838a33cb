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
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.core.whole_number import WholeNumber
from foveal.studies.plan.hardware import DEFAULT_HARDWARE
from foveal.studies.plan.layout import Layout
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
    # On this machine, the memory of these imports would count.
    from foveal.api.plan_ranks import plan_ranks
    from foveal.studies.plan.report import plan_json, plan_sections

    given = {size: number for size, number in sizes.items() if number is not None}
    made, published = plan_ranks(preset, overrides, layout, hardware or DEFAULT_HARDWARE, given)
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
            for option, path in (("valid", valid), ("test", test)):
                if path is not None:
                    raise UserError(f"--{option}: {name} is planned on its own data; leave it out")
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
