"""Texts that are nearly equal: by the part of their words in a row that both have (Broder 1997)."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from foveal.core.runtime import derived_seed
from foveal.core.terminal_text import counted
from foveal.data.core.hash_split import text_hash
from foveal.data.core.rows import Row, source_text
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.compared_rows import choose_rows, limit_findings
from foveal.studies.data_check.finding import MAX_ROWS, Finding, Severity

WORDS, MIN_WORDS = 3, 8
"""Words in a row that are compared, and words of the shortest texts that are."""
BANDS, BAND_ROWS = 12, 4
"""Two texts that share a part s of their words in a row are compared with probability 1 - (1 - s^4)^12, which
is 0.998 at s = 0.8 (Leskovec et al. 2020, section 3.4)."""
MIN_SIMILARITY = 0.8
MAX_TEXTS, MAX_WORDS = 200_000, 2_000
"""Texts that are compared, and words of each."""
MAX_GROUP = 50
"""Texts with one signature: each is compared with so many after it, and with so many of the last, which
are of train."""
CHECK = "nearly equal texts"


def check_near_texts(data: CheckedData) -> Iterator[Finding]:
    """Yield pairs of nearly equal texts: those across two splits, and those within a split."""
    if "source" not in data.text_fields:
        return
    counts = np.array([len(_words(row)) for _, row in data.rows()])
    usable = counts >= MIN_WORDS
    chosen = choose_rows(data, usable, MAX_TEXTS)
    shingles = _all_shingles(data, {*chosen.tolist()})
    groups = _groups(shingles)
    across, within = list[tuple[int, int]](), list[tuple[int, int]]()
    for one, other in _near_pairs(data, shingles, groups):
        (within if data.splits[one] == data.splits[other] else across).append((one, other))
    yield from _pairs(
        data,
        "problem",
        across,
        "of nearly equal texts, each in two splits, so scores are too high",
        "keep them in one split (data.group_pattern), or leave one of both out",
    )
    advice = "leave one of both out, if both are the same"
    yield from _pairs(data, "note", within, "of nearly equal texts in a split", advice)
    yield from limit_findings(data, CHECK, "text", usable, chosen)
    long = chosen[counts[chosen] > MAX_WORDS]
    yield from _cut(data, long, f"compared by the first {MAX_WORDS:,} words only")
    yield from _cut(data, _crowded(groups), f"each compared with some of over {2 * MAX_GROUP} like it only")


def _cut(data: CheckedData, rows: NDArray[np.int64], how: str) -> Iterator[Finding]:
    """Yield the rows that a limit leaves partly compared."""
    if len(rows):
        text, advice = f"{counted(len(rows), 'text')}, {how}", "look at them: more may be nearly equal"
        yield Finding(CHECK, "note", text, advice, len(rows), tuple(data.locations(rows, MAX_ROWS)))


def _words(row: Row) -> list[str]:
    return source_text(row).casefold().split()


def _pairs(
    data: CheckedData, severity: Severity, pairs: list[tuple[int, int]], message: str, advice: str
) -> Iterator[Finding]:
    if pairs:
        lines = [" ~ ".join(data.locations(np.array([other, one]), 2)) for one, other in pairs[:MAX_ROWS]]
        text = f"{counted(len(pairs), 'pair')} {message}"
        yield Finding(CHECK, severity, text, advice, len(pairs), tuple(lines))


def _shingles(words: list[str]) -> NDArray[np.uint64]:
    """Return the hashes of all `WORDS` words in a row."""
    rows = zip(*(words[start:] for start in range(WORDS)), strict=False)
    return np.unique(np.array([text_hash(" ".join(row)) for row in rows], np.uint64))


def _all_shingles(data: CheckedData, rows: set[int]) -> dict[int, NDArray[np.uint64]]:
    texts = ((index, row) for index, (_, row) in enumerate(data.rows()) if index in rows)
    return {index: _shingles(_words(row)[:MAX_WORDS]) for index, row in texts}


def _groups(shingles: dict[int, NDArray[np.uint64]]) -> list[list[int]]:
    """Return the texts that agree in a band of their signatures of minimal hashes, for each band: those of
    train, which have the lowest numbers, last."""
    generator = np.random.default_rng(derived_seed(0, "signatures"))
    factors = generator.integers(1, 2**63, BANDS * BAND_ROWS, dtype=np.uint64) | np.uint64(1)
    offsets = generator.integers(0, 2**63, BANDS * BAND_ROWS, dtype=np.uint64)
    bands = [defaultdict[bytes, list[int]](list) for _ in range(BANDS)]
    for index in sorted(shingles, reverse=True):
        own = shingles[index]
        mixed = own[:, None] * factors + offsets
        signature = (mixed ^ (mixed >> np.uint64(31))).min(0)
        for band, groups in enumerate(bands):
            groups[signature[band * BAND_ROWS : (band + 1) * BAND_ROWS].tobytes()].append(index)
    return [group for groups in bands for group in groups.values() if len(group) > 1]


def _crowded(groups: list[list[int]]) -> NDArray[np.int64]:
    """Return the texts of groups in which not all are compared with all."""
    rows = {index for group in groups if len(group) > 2 * MAX_GROUP for index in group}
    return np.array(sorted(rows), np.int64)


def _near_pairs(
    data: CheckedData, shingles: dict[int, NDArray[np.uint64]], groups: list[list[int]]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of nearly equal texts with different keys, the lower number first."""
    for later, earlier in _candidates(groups):
        shared = len(np.intersect1d(shingles[earlier], shingles[later]))
        either = len(shingles[earlier]) + len(shingles[later]) - shared
        if data.keys[earlier] != data.keys[later] and shared >= MIN_SIMILARITY * either:
            yield earlier, later


def _candidates(groups: list[list[int]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of texts in a group, each pair once."""
    seen = set[tuple[int, int]]()
    for rows in groups:
        for place, one in enumerate(rows):
            last = max(place + MAX_GROUP, len(rows) - MAX_GROUP)
            for other in (*rows[place + 1 : place + MAX_GROUP], *rows[last:]):
                if (one, other) not in seen:
                    seen.add((one, other))
                    yield one, other
