"""Tokens per second of training with the preset of every language model, against the preset `lstm`.

Each preset has its own batch size and precision. Whole steps on random tokens are timed.
"""

from benchmarks.subject import Subject
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core.runtime import keep_freed_memory
from foveal.tasks.config import load_config
from tests.support.trained_presets import trained_presets

BASE = "lstm"
GOALS = {"mamba": 0.5}


def measure(quick: bool) -> list[Measurement]:
    small = ["data.batch_tokens=256", "data.context_length=16"] if quick else []
    configs = {name: load_config(name, small) for name in trained_presets()}
    subjects = {
        name: Subject(config) for name, config in configs.items() if config.task.name == "language-model"
    }
    samples = interleave(subjects, rounds=7, quick=quick)
    base = subjects[BASE]
    measurements = []
    for name, subject in subjects.items():
        if name == BASE:
            continue
        values = [subject.tokens / base.tokens * value for value in samples.speedup(name, BASE)]
        speeds = [
            f"{timed.tokens / samples.median(preset):,.0f}"
            for preset, timed in ((name, subject), (BASE, base))
        ]
        size = f"{subject.parameters:,} parameters, {subject.config.training.precision}"
        title = f"Training the preset `{name}` over `{BASE}`, tokens/s"
        measurements.append(
            ratio(
                title,
                values,
                GOALS.get(name),
                f"{speeds[0]} against {speeds[1]} tokens/s",
                size,
                samples.trust,
            )
        )
    return measurements


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    report(measure(options.quick), options)
