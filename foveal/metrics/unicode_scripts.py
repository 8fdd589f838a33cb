"""Writing systems, by the Unicode names of their letters."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

SPACELESS_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""How the names of letters begin whose words have no space between them."""


def is_spaceless(letter: str) -> bool:
    """Return whether the letter's script is written without spaces between words."""
    return unicodedata.name(letter[:1] or " ", "").startswith(SPACELESS_SCRIPTS)


def bleu_tokenizer(texts: Iterable[str]) -> str:
    """Return the name of sacrebleu's tokenizer for texts of this script.

    The name is "zh" for Chinese, "char" for other scripts without spaces between words, else the default
    "13a".
    """
    letters = Counter("".join(letter for text in texts for letter in text if letter.isalpha()))
    spaceless = {letter: count for letter, count in letters.items() if is_spaceless(letter)}
    if 2 * sum(spaceless.values()) <= letters.total():
        return "13a"
    chinese = sum(count for letter, count in spaceless.items() if unicodedata.name(letter).startswith("CJK"))
    # Half of Japanese is written in kana.
    return "zh" if chinese > 0.9 * sum(spaceless.values()) else "char"
