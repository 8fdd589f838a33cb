"""Batches that the ranks share: each computes some, and all get the results, in the order of the batches."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from foveal.core.progress import EpochBatches, ProgressCallback
from foveal.training.agreement import Agreement

Result = TypeVar("Result")


def share(
    count: int, work: Callable[[int], Result], progress: ProgressCallback, together: Agreement
) -> Iterator[Result]:
    """Yield what `work` returns for each index below `count`, in order. The ranks that work `together` take
    indices in turn, and each result is used once. In the last round a rank may repeat an index, because ranks
    that share the weights compute together.

    Results of one round at most are in memory.
    """
    world = together.world
    for first in range(0, count, world.size):
        progress(first, count)
        own = work(min(first + world.rank, count - 1))
        yield from world.by_rank(together.exchange(own))[: count - first]


def results_by_row(
    batches: EpochBatches,
    work: Callable[[Any], Sequence[Result]],
    progress: ProgressCallback,
    together: Agreement,
) -> list[Result]:
    """Return what `work` returns for each row of a batch, for all rows of the data in order.

    Each row is in one batch, whose rows may be in any order.
    """

    def rows_and_results(index: int) -> list[tuple[int, Result]]:
        batch = batches.batch(0, index)
        return [*zip(batch.rows.tolist(), work(batch), strict=True)]

    results = dict[int, Result]()
    for pairs in share(batches.per_epoch, rows_and_results, progress, together):
        results.update(pairs)
    return [results[row] for row in range(len(results))]


def cut_evenly(count: int, parts: int) -> list[range]:
    """Return `count` numbers in `parts` ranges of nearly the same size, fewer if there are fewer numbers."""
    parts = min(count, parts)
    bounds = [count * part // parts for part in range(parts + 1)]
    return [range(*pair) for pair in pairwise(bounds)]
