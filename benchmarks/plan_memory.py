"""The memory that `foveal plan` predicts over that of real processes, at the peak of a step.

Real is what the allocator of torch has given and not taken back, in a step of the largest process. The goal
is 15 %.
"""

from benchmarks.timing import Measurement, parse_options, report
from foveal.distributed.world import ONE_PROCESS
from foveal.studies.plan.hardware import ASSUMED, named_hardware
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.plan import make_plan
from foveal.tasks.config import load_config
from tests.support.measured_step import measured_peak, measured_task
from tests.support.ranks import run_ranks

GOAL = 0.15
SETTINGS = ("model.width=256", "model.layers=6", "data.batch_tokens=4096", "data.context_length=128")
FLOAT32 = "training.precision=float32"
LAYOUTS = (
    Layout(),
    Layout(micro_batches=2),
    Layout(2),
    Layout(4),
    Layout(2, tp=2),
    Layout(4, tp=2),
    Layout(4, tp=4),
    Layout(2, fsdp=True),
    Layout(4, fsdp=True),
    Layout(2, pp=2, micro_batches=4),
    Layout(2, pp=2, virtual_stages=2, micro_batches=4),
    Layout(2, ep=2),
)


def preset_of(layout: Layout) -> str:
    """Return the preset that is measured."""
    return "moe" if layout.ep > 1 else "attention"


def predicted_and_measured(
    layout: Layout, settings: tuple[str, ...] = SETTINGS, preset: str = ""
) -> tuple[int, int]:
    """Return the bytes of a process at the peak of a step: planned, and of the largest real process."""
    settings, preset = (*settings, FLOAT32), preset or preset_of(layout)
    plan = make_plan(measured_task(load_config(preset, settings)), layout, named_hardware("cpu"), ASSUMED)
    arguments = (preset, settings, layout)
    if layout.ranks == 1:
        return plan.memory_total, measured_peak(ONE_PROCESS, *arguments)
    return plan.memory_total, max(run_ranks(layout.ranks, measured_peak, *arguments))


def main() -> None:
    options = parse_options(__doc__)
    measurements = []
    for layout in LAYOUTS[:3] if options.quick else LAYOUTS:
        for settings in (SETTINGS, (*SETTINGS, "training.activation_checkpointing=true")):
            planned, measured = predicted_and_measured(layout, settings)
            what = _named(layout, len(settings) > len(SETTINGS))
            title = f"planned over measured memory, {preset_of(layout)}, {what}"
            note = f"{planned / 1e6:,.1f} over {measured / 1e6:,.1f} MB"
            measurements.append(Measurement(title, planned / measured, None, False, [note]))
    report(measurements, options)


def _named(layout: Layout, recomputes: bool) -> str:
    parts = [f"{layout.ranks} processes", f"--tp {layout.tp}" * (layout.tp > 1), "--fsdp" * layout.fsdp]
    parts += [f"--pp {layout.pp}" * (layout.pp > 1), f"--ep {layout.ep}" * (layout.ep > 1)]
    parts += [f"--virtual-stages {layout.virtual_stages}" * (layout.virtual_stages > 1)]
    parts += [f"{layout.micro_batches} micro-batches" * (layout.micro_batches > 1)]
    return ", ".join([part for part in [*parts, "blocks computed again" * recomputes] if part])


if __name__ == "__main__":
    main()
