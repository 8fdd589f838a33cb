"""Files of a text a line, a file for each label, such as `rt-polarity.pos` and `rt-polarity.neg`."""

import re
import shlex
from collections.abc import Sequence

from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_first_bytes

LABEL_PAIRS = [{"pos", "neg"}, {"positive", "negative"}, {"ham", "spam"}]
HEAD_BYTES = 1 << 12
MIN_LINES = 3
"""Lines of each file at least."""


def polarity_hint(part: DataPart, names: Sequence[str]) -> str:
    """Say how to write two files of texts, each named by a label, as a table. Empty for other files."""
    labels = [_label(name) for name in names]
    if len(names) != 2 or {*labels} not in LABEL_PAIRS:
        return ""
    heads = [read_first_bytes(part.listing.file(name), HEAD_BYTES) for name in names]
    if any(head.count(b"\n") < MIN_LINES for head in heads):
        return ""
    first, second = labels
    files = " ".join(shlex.quote(f"{part}/{name}") for name in names)
    return (
        f"{names[0]} and {names[1]} look like texts of two labels, one a line; make a table: awk "
        f"""'BEGIN {{print "label\\ttext"}} {{gsub(/\\t/, " "); print (FILENAME == ARGV[1] ? "{first}" : """
        f""""{second}") "\\t" $0}}' {files} > {shlex.quote(f"{part}.tsv")}"""
    )


def _label(name: str) -> str:
    """Return the word of a name that is a label. Empty if there is none, or several."""
    words = {*re.findall("[a-z]+", name.lower())} & set[str]().union(*LABEL_PAIRS)
    return words.pop() if len(words) == 1 else ""
