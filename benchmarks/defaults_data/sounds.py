"""Recordings in a folder for each class: drums, instruments, and samples of a music program."""

import io
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from benchmarks.defaults_data.data_set import DataSet
from benchmarks.defaults_data.splits import LabeledFile, hold_out_files
from benchmarks.ten_lines.sounds import mel_statistics
from foveal.data.datasets.package_download import DebianPackage, NpmPackage
from foveal.data.files.archives import NamedContents

DRUMS = {
    "kick": r"kick|bassdrum|^bd|_bd_|hse_k_",
    "snare": r"snare|^sn|_sn_|^sd_|^rs_0|^sr_",
    "hihat": r"hi?-?hat|\bhat|_hat|hhat|hhclosed|hhopen|hhpedal|^hh_|^ho_|chh|ohh|_hh_|sabianhat|^closehi"
    r"|openhat|pedalhi",
    "tom": r"tom|^t[12]_|^ft_",
    "ride": r"ride|^rc_|paistebell",
    "crash": r"crash|splash|china|^cc_|^cra_",
    "clap": r"clap|snap",
    "hand drum": r"bongo|cajon|conga|djembe|dununba|kenkeni|sangban",
    "rattle": r"tambourine|maraca",
    "bell": r"cowbell|agogo|waterglass|cb\.|clave|woodblock",
    "stick": r"stick|rim",
}
"""What a drum's file is named. A file that matches none or several is left out."""
SAMPLES = ("ambi", "bass", "bd", "drum", "elec", "glitch", "hat", "loop", "perc", "tabla")
"""The groups of Sonic Pi's samples that have at least eight."""
FAMILIES = {
    0: "piano",
    1: "chromatic percussion",
    2: "organ",
    3: "guitar",
    4: "bass",
    5: "strings",
    7: "brass",
    8: "reed",
    9: "pipe",
    13: "ethnic",
}
"""Families of General MIDI's programs, eight programs each; those with too few samples are left out."""
DRUM_BANK = 128
SECONDS = 3
"""An instrument's note is cut after these."""
LIST_HEADER, RIGHT_CHANNEL, TO_INSTRUMENT, TO_SAMPLE = 12, 2, 41, 53


def _drums(files: NamedContents) -> Iterator[LabeledFile]:
    for path, content in files:
        kit, _, name = path.partition("/")
        kinds = [kind for kind, pattern in DRUMS.items() if re.search(pattern, name.lower())]
        if name.endswith((".wav", ".flac")) and len(kinds) == 1:
            yield kinds[0], f"{kit}-{name}".replace(" ", "-"), content


def write_drums(files: NamedContents, folder: Path) -> None:
    hold_out_files(_drums(files), folder)


def _samples(files: NamedContents) -> Iterator[LabeledFile]:
    for name, content in files:
        if name.split("_")[0] in SAMPLES:
            yield name.split("_")[0], name, content


def write_samples(files: NamedContents, folder: Path) -> None:
    hold_out_files(_samples(files), folder)


def _chunks(data: memoryview, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and end of every chunk of a RIFF file."""
    while start < end:
        size = struct.unpack_from("<I", data, start + 4)[0]
        yield bytes(data[start : start + 4]), start + 8, start + 8 + size
        start += 8 + size + size % 2


def _families(table: dict[bytes, list[tuple[Any, ...]]]) -> dict[int, set[str | None]]:
    """Return the families of the presets that use each sample of a sound font."""
    families: dict[int, set[str | None]] = defaultdict(set)
    presets, instruments = table[b"phdr"], table[b"inst"]
    for preset, next_preset in pairwise(presets):
        family = "drums" if preset[2] == DRUM_BANK else FAMILIES.get(preset[1] // 8)
        for instrument in _links(table, b"pbag", b"pgen", (preset[3], next_preset[3]), TO_INSTRUMENT):
            zones = (instruments[instrument][1], instruments[instrument + 1][1])
            for sample in _links(table, b"ibag", b"igen", zones, TO_SAMPLE):
                families[sample].add(family)
    return families


def _links(
    table: dict[bytes, list[tuple[Any, ...]]],
    bags: bytes,
    generators: bytes,
    zones: tuple[int, int],
    kind: int,
) -> Iterator[int]:
    """Yield the amounts of the generators of a kind in zones of a preset or instrument."""
    for zone in range(*zones):
        for operator, amount in table[generators][table[bags][zone][0] : table[bags][zone + 1][0]]:
            if operator == kind:
                yield amount


def _instruments(files: NamedContents) -> Iterator[LabeledFile]:
    """Yield the notes of a sound font (SoundFont technical specification 2.01, section 7).

    Of two channels only the left is read. Notes that presets of several families use are left out.
    """
    for _, content in files:
        data, place = memoryview(content), {}
        for _, start, end in _chunks(data, LIST_HEADER, len(data)):
            place.update({name: (first, last) for name, first, last in _chunks(data, start + 4, end)})
        formats = {b"phdr": "<20sHHHIII", b"inst": "<20sH", b"shdr": "<20sIIIIIBbHH"}
        formats |= dict.fromkeys((b"pbag", b"ibag", b"pgen", b"igen"), "<HH")
        table = {
            name: list(struct.iter_unpack(form, data[slice(*place[name])])) for name, form in formats.items()
        }
        sound = np.frombuffer(data[slice(*place[b"smpl"])], "<i2")
        families = _families(table)
        for number, (name, first, last, _, _, rate, *_, kind) in enumerate(table[b"shdr"][:-1]):
            family = families[number].pop() if len(families[number]) == 1 else None
            if family is not None and not kind & RIGHT_CHANNEL:
                file = io.BytesIO()
                soundfile.write(file, sound[first : min(last, first + SECONDS * rate)], rate, format="WAV")
                title = re.sub(r"\W+", "-", name.split(b"\0")[0].decode("latin-1")).strip("-")
                yield family, f"{number:04}-{title}.wav", file.getvalue()


def write_instruments(files: NamedContents, folder: Path) -> None:
    hold_out_files(_instruments(files), folder)


SOUNDS = [
    DataSet(
        name="drums",
        description="which of eleven kinds of drums and cymbals? (the kits of Hydrogen)",
        license="GPL-2+, CC BY 3.0, CC BY-SA 3.0 or CC0, by kit",
        package=DebianPackage(
            package="hydrogen-drumkits",
            version="2017.09.19~dfsg-1",
            sha256="6ea3c6df9a67762e2362f946c695e619859126b19fbccf32a2e8f07dfd03b2f4",
            files="usr/share/hydrogen/data/drumkits/*",
        ),
        write=write_drums,
        ten_lines=mel_statistics,
    ),
    DataSet(
        name="instruments",
        description="which of eleven families plays this note? (the FluidR3 sound font)",
        license="MIT",
        package=DebianPackage(
            package="fluid-soundfont-gm",
            version="3.1-5.3",
            sha256="6f531493ac4e4d9772fd96b2488ea1790af81c196135fbdd25997da0781fc60e",
            files="usr/share/sounds/sf2/FluidR3_GM.sf2",
        ),
        write=write_instruments,
        ten_lines=mel_statistics,
    ),
    DataSet(
        name="samples",
        description="which of ten groups has this sample? (Sonic Pi)",
        license="CC0 1.0",
        package=NpmPackage(
            package="supersonic-scsynth-samples",
            version="0.84.2",
            sha256="aff0b03208adb5dc7612dc7a4e86d55161188326bcff4dbc2d20ce9e1b94238c",
            files="package/samples/*.flac",
        ),
        write=write_samples,
        ten_lines=mel_statistics,
        held_out=True,
    ),
]
