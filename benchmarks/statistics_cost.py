"""Cost of the statistics of layers: 100 training steps with one measurement against 100 without.

That is how often a training measures from step 100 to step 2,000, where it measures most. Both go on with the
same model.
"""

import tempfile
from pathlib import Path

from benchmarks.subject import Subject
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core.runtime import keep_freed_memory
from foveal.inspection.histograms.measure import layer_probe
from foveal.store.metrics_log import JsonlLog
from foveal.tasks.config import load_config
from foveal.training.layer_statistics import FIRST_GAP, LayerStatistics

MODELS = ("attention", "lstm", "mamba")
GOAL = 0.99
ROUNDS = 5


def measure(name: str, folder: Path, quick: bool) -> Measurement:
    """Return the speed of steps with statistics over that of steps without."""
    small = ["data.batch_tokens=256", "data.context_length=16"] if quick else []
    subject = Subject(load_config(name, small))
    path = folder / f"{name}.jsonl"
    path.touch()
    log = JsonlLog(path)
    statistics = LayerStatistics(subject.model, layer_probe(subject.task, subject.data), log)
    steps = 2 if quick else FIRST_GAP

    def train() -> None:
        for _ in range(steps):
            subject()

    def train_and_measure() -> None:
        for _ in range(steps - 1):
            subject()
        statistics.before_step(FIRST_GAP - 1, None)
        subject()
        statistics.after_step(FIRST_GAP, None)

    samples = interleave({"measured": train_and_measure, "plain": train}, rounds=ROUNDS, quick=quick)
    log.close()
    assert '"error"' not in path.read_text(), "a measurement failed"
    seconds = [f"{samples.median(one):.2f} s" for one in ("measured", "plain")]
    label = f"{name}, {steps} steps: training with statistics of layers over without, speed"
    values = samples.speedup("measured", "plain")
    return ratio(label, values, GOAL, f"{seconds[0]} against {seconds[1]}", samples.trust)


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as temporary:
        report([measure(name, Path(temporary), options.quick) for name in MODELS], options)
