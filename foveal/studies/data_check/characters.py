"""Characters that do not belong in texts, and those of held-out texts that training never shows."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from foveal.core.terminal_text import counted
from foveal.data.core.fields import Fields
from foveal.studies.data_check.checked_data import CheckedData, place
from foveal.studies.data_check.finding import MAX_ROWS, Finding, findings_on

MOJIBAKE = re.compile(
    "[\u00c2\u00c3][\u0080-\u00bf\u20ac\u0192\u02c6\u2030\u0160\u0152\u017d\u0161\u0153\u017e\u0178]"
    "|\u00e2\u20ac[\u0090-\u2122]|\u00ef\u00bb\u00bf"
)
"""UTF-8 that was read as Latin-1 or Windows-1252, such as `Ã©` for `é`."""
MARKUP = re.compile(
    r"</?(?:p|br|b|i|a|div|span|img|table|tr|td|li|ul|h\d)\b[^<>]*>|&(?:amp|lt|gt|quot|nbsp|#\d+);"
)
"""Tags and entities of HTML."""


def check_characters(data: CheckedData) -> Iterator[Finding]:
    """Yield texts with characters of a wrong decoding, with control characters, or with markup; and
    characters that only held-out texts have."""
    if not data.text_fields:
        return
    kinds: dict[str, list[str]] = {"lost": [], "decoded": [], "control": [], "markup": []}
    known: set[str] = set()
    new, new_rows = Counter[str](), list[str]()
    for split, row in data.rows():
        text = "\n".join(_texts(data, row.fields))
        for kind, is_in in (
            ("lost", "\ufffd" in text),
            ("decoded", MOJIBAKE.search(text) is not None),
            ("control", any(unicodedata.category(one) == "Cc" and one not in "\t\n\r" for one in {*text})),
            ("markup", MARKUP.search(text) is not None),
        ):
            if is_in:
                kinds[kind].append(place(split, row))
        letters = {*text}
        if split == "train":
            known |= letters
        elif unknown := letters - known - {"\n"}:
            new.update(unknown)
            new_rows.append(f"{place(split, row)}: {''.join(sorted(unknown))!r}")
    yield from findings_on(
        "characters",
        "problem",
        kinds["lost"],
        "{} with the character U+FFFD, which stands for bytes that could not be decoded",
        "get the text again, and name its encoding (data.encoding)",
    )
    yield from findings_on(
        "characters",
        "problem",
        kinds["decoded"],
        "{} with letters such as Ã©, which are UTF-8 read as another encoding",
        "decode the text again as UTF-8",
    )
    yield from findings_on(
        "characters", "note", kinds["control"], "{} with control characters", "remove them"
    )
    yield from findings_on(
        "characters",
        "note",
        kinds["markup"],
        "{} with tags or entities of HTML",
        "remove them, if they mean nothing",
    )
    if new:
        shown = "".join(sorted(new)[:30])
        yield Finding(
            "characters",
            "note",
            f"{counted(len(new), 'character')} in held-out rows alone: {shown!r}",
            "a tokenizer of characters can't read them; a model has never seen them",
            len(new_rows),
            tuple(new_rows[:MAX_ROWS]),
        )


def _texts(data: CheckedData, fields: Fields) -> Iterator[str]:
    for name in data.text_fields:
        value = fields[name]
        yield value if isinstance(value, str) else " ".join(value)
