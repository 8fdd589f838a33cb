"""Scripts, by the Unicode names of their letters."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

SPACELESS_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""How the names of letters begin whose words have no space between them."""


def is_spaceless(letter: str) -> bool:
    """Whether it is of a script that writes words without spaces between."""
    return unicodedata.name(letter[:1] or " ", "").startswith(SPACELESS_SCRIPTS)


def bleu_tokenizer(texts: Iterable[str]) -> str:
    """sacrebleu's tokenizer for texts of this script: "zh" for Chinese, "char" for others without spaces
    between words, else its usual one."""
    letters = Counter("".join(letter for text in texts for letter in text if letter.isalpha()))
    of_those = {letter: count for letter, count in letters.items() if is_spaceless(letter)}
    if 2 * sum(of_those.values()) <= letters.total():
        return "13a"
    chinese = sum(count for one, count in of_those.items() if unicodedata.name(one).startswith("CJK"))
    # Half of Japanese is written in kana.
    return "zh" if chinese > 0.9 * sum(of_those.values()) else "char"
