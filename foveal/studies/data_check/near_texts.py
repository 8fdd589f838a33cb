"""Texts that are nearly equal: by the part of their words in a row that both have (Broder 1997)."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from foveal.core.runtime import derived_seed
from foveal.core.terminal_text import counted
from foveal.data.core.hash_split import text_hash
from foveal.studies.data_check.checked_data import CheckedData
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
"""Texts with one signature that are compared with each other."""


def check_near_texts(data: CheckedData) -> Iterator[Finding]:
    """Yield pairs of nearly equal texts: those across two splits, and those within a split."""
    if "source" not in data.text_fields:
        return
    shingles = dict[int, NDArray[np.uint64]]()
    for index, (_, row) in enumerate(data.rows()):
        source = row.fields["source"]
        words = (source if isinstance(source, str) else " ".join(source)).casefold().split()
        if len(words) >= MIN_WORDS:
            shingles[index] = _shingles(words[:MAX_WORDS])
        if len(shingles) == MAX_TEXTS:
            break
    across, within = list[tuple[int, int]](), list[tuple[int, int]]()
    for one, other in _candidates(shingles):
        if data.keys[one] == data.keys[other]:
            continue
        shared = len(np.intersect1d(shingles[one], shingles[other]))
        if shared < MIN_SIMILARITY * (len(shingles[one]) + len(shingles[other]) - shared):
            continue
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


def _pairs(
    data: CheckedData, severity: Severity, pairs: list[tuple[int, int]], message: str, advice: str
) -> Iterator[Finding]:
    if pairs:
        lines = [" ~ ".join(data.locations(np.array([other, one]), 2)) for one, other in pairs[:MAX_ROWS]]
        text = f"{counted(len(pairs), 'pair')} {message}"
        yield Finding("nearly equal texts", severity, text, advice, len(pairs), tuple(lines))


def _shingles(words: list[str]) -> NDArray[np.uint64]:
    """Return the hashes of all `WORDS` words in a row."""
    rows = zip(*(words[start:] for start in range(WORDS)), strict=False)
    return np.unique(np.array([text_hash(" ".join(row)) for row in rows], np.uint64))


def _candidates(shingles: dict[int, NDArray[np.uint64]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of texts that agree in a band of their signatures of minimal hashes, each pair once."""
    generator = np.random.default_rng(derived_seed(0, "signatures"))
    factors = generator.integers(1, 2**63, BANDS * BAND_ROWS, dtype=np.uint64) | np.uint64(1)
    offsets = generator.integers(0, 2**63, BANDS * BAND_ROWS, dtype=np.uint64)
    groups = [defaultdict[bytes, list[int]](list) for _ in range(BANDS)]
    for index, own in shingles.items():
        mixed = own[:, None] * factors + offsets
        signature = (mixed ^ (mixed >> np.uint64(31))).min(0)
        for band, group in enumerate(groups):
            group[signature[band * BAND_ROWS : (band + 1) * BAND_ROWS].tobytes()].append(index)
    seen = set[tuple[int, int]]()
    for group in groups:
        for rows in group.values():
            for place, one in enumerate(rows):
                for other in rows[place + 1 : place + MAX_GROUP]:
                    if (one, other) not in seen:
                        seen.add((one, other))
                        yield one, other
