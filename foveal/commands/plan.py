"""`foveal plan PRESET`: what a training takes on many processes, or on this machine."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.plan import plan_named
from foveal.api.plan_options import PlanOptions
from foveal.api.training.options import TrainingOptions
from foveal.core.signals import SignalHandler
from foveal.core.whole_number import WholeNumber
from foveal.studies.plan.layout import Layout
from foveal.studies.report_files import check_report_path, write_report
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
    utilization: float | None = None,
    data: str | None = None,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    device: str = "auto",
    price_per_hour: float | None = None,
    vocabulary: WholeNumber | None = None,
    classes: WholeNumber | None = None,
    out: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show what a training of PRESET, of a network for images, or of a run takes on many processes, or on
    this machine.

    Of many processes one is counted: it takes a step on fake tensors, without the others. With --data, or
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
        The devices: p100, v100-dgx2h, a100, h100, h200 or cpu; h100 if not given. Or this-machine.
    data
        What to train on, on this machine: a path or a name, as for foveal train.
    task
        What to learn of DATA; if not given, the model's task, or the one that fits DATA.
    text
        The column of texts, or of sources if --target is given.
    label
        The column of labels.
    target
        The column of target texts.
    valid
        Held-out data that select the best weights.
    test
        Held-out data for the reported score.
    device
        The device of this machine: cpu, cuda, mps, or auto.
    utilization
        The part of the peak that matrix products reach, such as 0.4; 0.66 if not given.
    price_per_hour
        What a device costs for an hour, in any currency, for the cost of the training.
    vocabulary
        The number of tokens; if not given, that of the run, data.vocab_size, or that of usual characters.
    classes
        The number of classes of images; if not given, that of the run, of the published network, or 1000.
    out
        A file for the report: .html, .json, .png, .svg or .pdf; or a folder for report.html, report.json and
        report.png.
    json
        Print one JSON object on standard output.
    """
    layout = Layout(ranks, tp, pp, virtual_stages, ep, fsdp, micro_batches)
    machines = PlanOptions(layout, hardware, utilization, price_per_hour, vocabulary, classes)
    options = TrainingOptions(
        task=task, model=preset, text=text, label=label, target=target, valid=valid, test=test, device=device
    )
    with SignalHandler():
        check_report_path(out)
        made = plan_named(preset, data, overrides, options, machines)
        if out is not None:
            write_report(made.payload(), out)
    if json:
        print_json(made.to_json())
    else:
        print_sections(made.sections())
