"""Training speed, in tokens per second, of every language model preset, compared with the LSTM's.

A preset brings its own size of batch and its precision; the time is that of whole steps on random tokens.
"""

from benchmarks.subject import Subject
from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.config import preset_names
from foveal.core.runtime import keep_freed_memory
from foveal.tasks.config import load_config

BASE = "lstm"
GOALS = {"mamba": 0.5}


def measure(quick: bool) -> list[Figure]:
    small = ["data.batch_tokens=256", "data.context_length=16"] if quick else []
    configs = {name: load_config(name, small) for name in preset_names()}
    subjects = {
        name: Subject(config) for name, config in configs.items() if config.task.name == "language-model"
    }
    samples = interleave(subjects, rounds=7, quick=quick)
    base = subjects[BASE]
    figures = []
    for name, subject in subjects.items():
        if name == BASE:
            continue
        values = [subject.tokens / base.tokens * value for value in samples.speedup(name, BASE)]
        speeds = [
            f"{one.tokens / samples.median(kind):,.0f}" for kind, one in ((name, subject), (BASE, base))
        ]
        size = f"{subject.parameters:,} parameters, {subject.config.training.precision}"
        what = f"Training the preset `{name}` over `{BASE}`, tokens/s"
        figures.append(
            ratio(
                what,
                values,
                GOALS.get(name),
                f"{speeds[0]} against {speeds[1]} tokens/s",
                size,
                samples.trust,
            )
        )
    return figures


if __name__ == "__main__":
    given = options(__doc__)
    keep_freed_memory()
    report(measure(given.quick), given)
