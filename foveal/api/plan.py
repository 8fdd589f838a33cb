"""The plan of a training on many processes or on this machine, from Python and on the command line."""

from collections.abc import Mapping
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from foveal.api.errors import plain_errors
from foveal.api.plan_here import plan_of_run, plan_on_data
from foveal.api.plan_options import PlanOptions
from foveal.api.results.counted_plan import CountedPlan
from foveal.api.results.machine_plan import MachinePlan
from foveal.api.training.options import TrainingOptions, setting
from foveal.api.training.stored import store_training
from foveal.config.old_names import flatten
from foveal.core.errors import UserError
from foveal.studies.plan.hardware import THIS_MACHINE
from foveal.studies.plan.layout import Layout
from foveal.ui.console import silence

OF_DATA = ("task", "text", "label", "target", "valid", "test")
"""Options that say what to learn of DATA."""


@plain_errors
def plan(
    model: str | Path,
    data: Any = None,
    *,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: Any = None,
    test: Any = None,
    device: str = "auto",
    ranks: SupportsIndex = 1,
    tp: SupportsIndex = 1,
    pp: SupportsIndex = 1,
    virtual_stages: SupportsIndex = 1,
    ep: SupportsIndex = 1,
    fsdp: bool = False,
    micro_batches: SupportsIndex = 1,
    hardware: str | None = None,
    utilization: float | None = None,
    price_per_hour: float | None = None,
    vocabulary: SupportsIndex | None = None,
    classes: SupportsIndex | None = None,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> MachinePlan | CountedPlan:
    """Return what a training takes on many processes, or on this machine. `foveal plan` does the same.

    Of many processes one is counted: it takes a step on fake tensors, without the others. With `data`, or
    `hardware="this-machine"` for a run, a step is measured here.

    Raises: UserError: there is no such model, the data can't be read, a setting or the layout does not fit,
        or the model does not fit into the free memory.

    Parameters
    ----------
    model
        A preset, a network for images, the path of a TOML file, or a run.
    data, valid, test
        What to train on, on this machine, as for `foveal.train`: paths, names, or values in memory. A run has
        its own.
    task
        What to learn; if not given, the model's task, or the one that fits the data.
    text, label, target
        The columns of texts (of sources if `target` is given), of labels, and of target texts.
    device
        The device of this machine: cpu, cuda, mps, or auto.
    ranks
        The number of all processes.
    tp
        Processes that split each layer (tensor parallel).
    pp, virtual_stages
        Stages of a pipeline of layers; parts of the pipeline in each process.
    ep
        Processes that share the experts.
    fsdp
        Whether the processes share all weights.
    micro_batches
        Micro-batches that a process computes one after another in a step.
    hardware
        The devices: p100, v100-dgx2h, a100, h100, h200 or cpu; h100 if not given. Or this-machine.
    utilization
        The part of the peak that matrix products reach, such as 0.4; 0.66 if not given.
    price_per_hour
        What a device costs for an hour, in any currency, for the cost of the training.
    vocabulary
        The number of tokens; if not given, that of the run, `data.vocab_size`, or that of usual characters.
    classes
        The number of classes of images; if not given, that of the run, of the published network, or 1000.
    quiet
        Print nothing.
    settings
        Other settings by their keys, such as `{"model.width": 256}`.
    """
    layout = Layout(
        index(ranks), index(tp), index(pp), index(virtual_stages), index(ep), fsdp, index(micro_batches)
    )
    sizes = (None if size is None else index(size) for size in (vocabulary, classes))
    machines = PlanOptions(layout, hardware, utilization, price_per_hour, *sizes)
    options = TrainingOptions(
        task=task, model=str(model), text=text, label=label, target=target, device=device
    )
    if data is None:
        overrides = tuple(setting(key, value) for key, value in flatten(settings or {}))
        options = replace(options, valid=valid, test=test)
        with silence(quiet):
            return plan_named(str(model), None, overrides, options, machines)
    stored = store_training(data, valid, test, options, settings)
    with silence(quiet):
        return plan_named(str(model), stored.data, stored.overrides, stored.options, machines)


def plan_named(
    name: str, data: str | None, overrides: tuple[str, ...], options: TrainingOptions, machines: PlanOptions
) -> MachinePlan | CountedPlan:
    """Return the plan of a training of a preset, a file, a network or a run.

    Raises: UserError or ConfigError: there is none of this name, DATA can't be read, or an option or a
        setting does not fit.
    """
    of_data = [option for option in OF_DATA if getattr(options, option) is not None]
    if not machines.is_here(data):
        of_data += [] if options.device == "auto" else ["device"]
        if given := ["data", *of_data] if data is not None else of_data:
            raise UserError(f"--{given[0]}: is read for --hardware {THIS_MACHINE} alone; leave it out")
        # On this machine, the memory of these imports would count.
        from foveal.api.plan_ranks import plan_ranks

        return plan_ranks(name, overrides, machines)
    machines.check_here()
    if data is not None:
        return plan_on_data(data, overrides, options)
    if of_data:
        raise UserError(f"--{of_data[0]}: {name} is planned on its own data; leave it out")
    return plan_of_run(Path(name), overrides, options.device)
