"""A run in a few words, from its small files."""

from pathlib import Path

from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run_list import summarize_run


def run_facts(run: Path) -> list[str]:
    """Return task, model, data, score and state of a run, as far as they are known."""
    facts = summarize_run(run)
    score = None if facts.score is None else f"{facts.score_name} {facts.score:.4g}"
    data = None if facts.data is None else shorten_unpacked_paths(facts.data)
    named = {"model": facts.model, "data": data}
    words = [f"{name} {value}" for name, value in named.items() if value is not None]
    return [*words, *([] if score is None else [score]), facts.state]
