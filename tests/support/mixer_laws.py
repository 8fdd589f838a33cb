"""What the tests of laws share: paths that are recorded, and lengths that hypothesis draws."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from hypothesis import strategies as st

from foveal.ops.jit.dispatch import record_paths, reference_only


@contextmanager
def on_path(reference: bool) -> Iterator[list[str]]:
    """Return a context with only the reference, or with the default paths. The list gains each
    path that ran."""
    with record_paths() as ran, reference_only() if reference else nullcontext():
        yield ran
    assert all(step.endswith(":reference") for step in ran) or not reference


def lengths_of_chunks(most: int = 5) -> st.SearchStrategy[list[list[int]]]:
    """Draw the lengths of 1 to 4 rows, for each of 1 to 4 chunks."""
    row = st.integers(0, most)
    return st.integers(1, 4).flatmap(
        lambda rows: st.lists(st.lists(row, min_size=rows, max_size=rows), min_size=1, max_size=4)
    )
