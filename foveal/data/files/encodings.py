"""The encoding of bytes that are not UTF-8, guessed for a message: the likeliest of some common encodings.

Each encoding has a model of its languages: which characters are frequent, and how often a letter beyond ASCII
follows another. All models describe the same bytes, so their likelihoods can be compared.
"""

import codecs
from collections.abc import Callable
from functools import lru_cache
from math import log
from typing import NamedTuple

SAMPLE_BYTES = 1 << 16
"""First bytes that are looked at."""
SURE = 7.0
"""The log-likelihood ratio from which on an encoding is named alone."""
MAX_CANDIDATES = 4
ASCII_LETTERS, CHARACTERS = 1 / 64, 1 << 14
"""The probability of an ASCII character, and the number of characters that no model knows."""
LEVEL_1 = {"shift_jis": (0x889F, 0x9872), "gb18030": (0xB0A1, 0xD7F9), "big5": (0xA440, 0xC67E)}
"""The first and the last code of the common characters, which stand before the rare ones."""


class Script(NamedTuple):
    """The characters beyond ASCII that are usual in an encoding's languages."""

    languages: str
    frequent: str
    """The characters that make up about two thirds of those beyond ASCII."""
    common: str | Callable[[str], bool]
    """Other common characters, or a test for them."""
    common_count: int
    in_words: float
    """The probability that a character beyond ASCII follows another."""
    after_ascii: float
    """The probability that a character beyond ASCII follows an ASCII letter."""


def _is_common(encoding: str) -> Callable[[str], bool]:
    first, last = LEVEL_1[encoding]

    def test(character: str) -> bool:
        return first <= int.from_bytes(character.encode(encoding), "big") <= last

    return test


def _is_japanese(character: str) -> bool:
    return "\u30a0" <= character <= "\u30ff" or (
        "\u4e00" <= character <= "\u9fff" and _is_common("shift_jis")(_in_shift_jis(character))
    )


@lru_cache(1 << 12)
def _in_shift_jis(character: str) -> str:
    """Return a character of Shift-JIS unchanged, and a rare one for any other."""
    return character if character.encode("shift_jis", "ignore") else "\u9f95"


def _is_hangul(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


def _is_thai(character: str) -> bool:
    return "\u0e01" <= character <= "\u0e5b"


HIRAGANA = "".join(map(chr, range(0x3041, 0x3094))) + "\u3001\u3002\u30fc"
CYRILLIC = "".join(map(chr, range(0x410, 0x450))) + "ёЁіїєґІЇЄ«»—№"
WESTERN = "ëìîïòùûýÿœšžÀÁÂÄÅÆÇÈÉÊÍÑÓÔÖØÚÜ‘„—…«»¡¿°§£€©®²´·"
CENTRAL = "ĄĆĘŁŃÓŚŹŻÁČĎÉĚÍŇŘŠŤÚŮÝŽŐŰöüäâîţ„”–"
GREEK = "ωθδγφβξζχψέύώΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΆΈΉΊΌΎΏϊ"
CHINESE = "的一是不了人我在有他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年，。"
TRADITIONAL = "的一是不了人我在有他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年，。"
JAPANESE = (HIRAGANA, _is_japanese, 3100, 0.8, 0.1)
RUSSIAN = ("оеаинтсрвлкмдпуяыьгзб", CYRILLIC, len(CYRILLIC), 0.8, 0.002)
SCRIPTS = {
    "cp1252": Script("Latin-1", "éèàäöüßçñóíáêâôãõúåæø’“”–", WESTERN, len(WESTERN), 0.05, 0.06),
    "cp1250": Script("Central European", "ąćęłńóśźżáčďéěíňřšťúůýžőűăș", CENTRAL, len(CENTRAL), 0.08, 0.08),
    "cp1251": Script("Cyrillic", *RUSSIAN),
    "koi8_r": Script("Cyrillic", *RUSSIAN),
    "cp1253": Script("Greek", "αοιετσνηυρπκμλςίόάή", GREEK, len(GREEK), 0.8, 0.002),
    "cp1255": Script("Hebrew", "יולהאמרתשבנ", "דקכפעםסחטגזןצץךף", 16, 0.8, 0.002),
    "cp1256": Script("Arabic", "اليمنوتربةعد", "سفقهحكجشطصخضذثزغظئءؤأإآى،؟", 26, 0.8, 0.002),
    "shift_jis": Script("Japanese", *JAPANESE),
    "euc_jp": Script("Japanese", *JAPANESE),
    "gb18030": Script("Chinese", CHINESE, _is_common("gb18030"), 3755, 0.85, 0.1),
    "big5": Script("traditional Chinese", TRADITIONAL, _is_common("big5"), 5401, 0.85, 0.1),
    "cp874": Script("Thai", "านรอกเงมยลวดทส", _is_thai, 70, 0.9, 0.01),
    "euc_kr": Script("Korean", "이다는을에의가고하은지로를도리기서자한사", _is_hangul, 2350, 0.7, 0.05),
}
"""The encodings that are tried."""
HEAD_START = {"cp1252": 4.0, "cp1251": 2.0}
"""The logs of how much more frequent than the others an encoding is."""


def encoding_hint(data: bytes) -> str:
    """Return how to read bytes that are not UTF-8, for a message: the encoding that they seem to have, or
    those that they may have."""
    likely = likely_encodings(data)
    if len(likely) == 1:
        return f"it seems {SCRIPTS[likely[0]].languages}: data.encoding={likely[0]}"
    named = " or ".join(f"{encoding} ({SCRIPTS[encoding].languages})" for encoding in likely)
    return f"name its encoding: data.encoding={named}"


def iconv_hint(data: bytes) -> str:
    """Return the command that converts a file that begins with `data`, which are not UTF-8."""
    likely = likely_encodings(data)
    languages = " or ".join(dict.fromkeys(SCRIPTS[encoding].languages for encoding in likely))
    first, *others = (encoding.upper().replace("_", "-") for encoding in likely)
    more = f" (or -f {', '.join(others)})" if others else ""
    return f"if it is {languages}, convert with: iconv -f {first} -t UTF-8 OLD > NEW{more}"


def likely_encodings(data: bytes) -> list[str]:
    """Return the encodings that bytes may have, the likeliest first; one alone if the others are unlikely.

    There is always one, since every byte is a character of KOI8-R.
    """
    sample = data[:SAMPLE_BYTES]
    scores = {encoding: _log_likelihood(sample, encoding) for encoding in SCRIPTS}
    known = {encoding: score for encoding, score in scores.items() if score is not None}
    ranked = sorted(known, key=lambda encoding: -known[encoding])
    return [each for each in ranked if known[ranked[0]] - known[each] <= SURE][:MAX_CANDIDATES]


def _log_likelihood(data: bytes, encoding: str) -> float | None:
    """Return the log of the probability of the bytes in an encoding; None if they can't be decoded."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return None
    script, total, before = SCRIPTS[encoding], HEAD_START.get(encoding, 0.0), " "
    for character in text:
        beyond = script.in_words if before > "\x7f" else script.after_ascii if before.isalpha() else 0.1
        if character <= "\x7f":
            is_mixed = before > "\x7f" and character.isalpha()
            total += log((1 - beyond) * ASCII_LETTERS * (min(1, 10 * script.after_ascii) if is_mixed else 1))
        else:
            total += log(beyond * _probability(character, script))
        before = character
    return total


def _probability(character: str, script: Script) -> float:
    """Return the probability of a character among those beyond ASCII."""
    if character in script.frequent:
        return 0.65 / len(script.frequent)
    is_common = script.common(character) if callable(script.common) else character in script.common
    return 0.33 / script.common_count if is_common else 0.02 / CHARACTERS
