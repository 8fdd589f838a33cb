"""Small folders in the layouts of public data sets, and the targets of the files of each split."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from tests.support.class_folders import recording
from tests.support.image_folders import encode_png, random_images
from tests.support.tars import tar_of

COLORS = ("red", "green", "blue")
Targets = dict[str, list[str]]


class PublicLayout(NamedTuple):
    """A folder, and how it is read."""

    files: dict[str, bytes]
    task: str
    targets: Targets
    """The targets of each split, sorted."""


def color(number: int) -> str:
    return COLORS[number % 3]


def caption(number: int) -> str:
    return f'a {color(number)} thing, "number" {number}'


def captions(numbers: Iterable[int]) -> list[str]:
    return sorted(map(caption, numbers))


def colors(numbers: Iterable[int]) -> list[str]:
    return sorted(map(color, numbers))


def files(names: Iterable[str]) -> dict[str, bytes]:
    """Return a different picture or recording for each name."""
    images = random_images(40)
    return {
        name: recording(number) if name.endswith((".wav", ".flac", ".mp3")) else encode_png(images[number])
        for number, name in enumerate(names)
    }


def lines(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def quoted(number: int) -> str:
    return '"' + caption(number).replace('"', '""') + '"'


def coco(numbers: Iterable[int]) -> bytes:
    images = [{"id": 7 * number, "file_name": f"{number}.jpg"} for number in numbers]
    notes = [
        {"image_id": image["id"], "caption": caption(n)} for n, image in zip(numbers, images, strict=True)
    ]
    return json.dumps({"images": images, "annotations": notes}).encode()


def common_voice(numbers: Iterable[int]) -> bytes:
    return lines("client\tpath\tsentence", *(f"a\t{n}.mp3\t{caption(n)}" for n in numbers))


TEN, REST = range(10), range(10, 16)
FLICKR_ROWS = [f"{n}.jpg,{quoted(n)}" for n in TEN]
TOKENS = lines(*(f"{n}.jpg#{m}\t{caption(n)}" for n in TEN for m in range(2)))
LIBRI = files(f"84/{n % 2}/84-{n % 2}-{n}.flac" for n in TEN)
LIBRI_TEXTS = {
    f"84/{c}/84-{c}.trans.txt": lines(*(f"84-{c}-{n} {caption(n)}" for n in TEN if n % 2 == c))
    for c in (0, 1)
}
PICTURES = files(f"{n}.jpg" for n in TEN)
LEMMAS = lines(*(f"{n}.jpg#0\ta {color(n)} thing be" for n in TEN))
WORDS = [f"{color(n)}/{n}_nohash.wav" for n in range(16)]
LAYOUTS = {
    "WebDataset": PublicLayout(
        {
            "pictures-000000.tar": tar_of(
                files(f"{n}.jpg" for n in TEN) | {f"{n}.txt": caption(n).encode() for n in TEN}
            )
        },
        "captioning",
        {"train": captions(TEN)},
    ),
    "Flickr8k, captions beside": PublicLayout(
        PICTURES | {"captions.txt": lines("image,caption", *FLICKR_ROWS)},
        "captioning",
        {"train": captions(TEN)},
    ),
    "Flickr8k, captions above": PublicLayout(
        files(f"Images/{n}.jpg" for n in TEN) | {"captions.txt": lines("image,caption", *FLICKR_ROWS)},
        "captioning",
        {"train": captions(TEN)},
    ),
    "Flickr8k, tokens": PublicLayout(
        files(f"Flicker8k_Dataset/{n}.jpg" for n in TEN) | {"Flickr8k_text/Flickr8k.token.txt": TOKENS},
        "captioning",
        {"train": captions([*TEN, *TEN])},
    ),
    "Flickr8k, tokens of splits": PublicLayout(
        files(f"Flicker8k_Dataset/{n}.jpg" for n in range(16))
        | {
            "Flickr8k_text/Flickr8k.lemma.token.txt": LEMMAS,
            "Flickr8k_text/Flickr8k.token.txt": lines(*(f"{n}.jpg#0\t{caption(n)}" for n in range(16))),
            "Flickr8k_text/Flickr_8k.trainImages.txt": lines(*(f"{n}.jpg" for n in TEN)),
            "Flickr8k_text/Flickr_8k.devImages.txt": lines(*(f"{n}.jpg" for n in range(10, 12))),
            "Flickr8k_text/Flickr_8k.testImages.txt": lines(*(f"{n}.jpg" for n in range(12, 15))),
        },
        "captioning",
        {"train": captions(TEN), "valid": captions(range(10, 12)), "test": captions(range(12, 15))},
    ),
    "COCO": PublicLayout(
        files([*(f"train2017/{n}.jpg" for n in TEN), *(f"val2017/{n}.jpg" for n in REST)])
        | {
            "annotations/captions_train2017.json": coco(TEN),
            "annotations/captions_val2017.json": coco(REST),
            "annotations/instances_train2017.json": b'{"annotations": [{"bbox": [1, 2, 3, 4]}]}',
        },
        "captioning",
        {"train": captions(TEN), "valid": captions(REST)},
    ),
    "Common Voice": PublicLayout(
        files(f"clips/{n}.mp3" for n in range(16))
        | {
            "train.tsv": common_voice(TEN),
            "test.tsv": common_voice(REST),
            "validated.tsv": common_voice(range(16)),
            "clip_durations.tsv": lines("clip\tduration", *(f"{n}.mp3\t200" for n in range(16))),
        },
        "speech-recognition",
        {"train": captions(TEN), "test": captions(REST)},
    ),
    "LJSpeech": PublicLayout(
        files(f"wavs/LJ-{n}.wav" for n in TEN)
        | {"metadata.csv": lines(*(f"LJ-{n}|raw|{caption(n)}" for n in TEN)), "README": b"about"},
        "speech-recognition",
        {"train": captions(TEN)},
    ),
    "LibriSpeech, a part": PublicLayout(LIBRI | LIBRI_TEXTS, "speech-recognition", {"train": captions(TEN)}),
    "LibriSpeech": PublicLayout(
        {f"train-clean/{name}": content for name, content in (LIBRI | LIBRI_TEXTS).items()}
        | {
            f"{part}/{name}": content
            for part in ("dev-clean", "dev-other")
            for name, content in (LIBRI | LIBRI_TEXTS).items()
        },
        "speech-recognition",
        {"train": captions(TEN), "valid": captions([*TEN, *TEN])},
    ),
    "NeMo": PublicLayout(
        files(f"wavs/{n}.wav" for n in TEN)
        | {"all.jsonl": lines(*(json.dumps({"audio": f"wavs/{n}.wav", "text": caption(n)}) for n in TEN))},
        "speech-recognition",
        {"train": captions(TEN)},
    ),
    "ESC-50": PublicLayout(
        files(f"audio/{n}.wav" for n in TEN)
        | {"meta/esc50.csv": lines("filename,fold,category", *(f"{n}.wav,{n % 2},{color(n)}" for n in TEN))},
        "audio-classification",
        {"train": colors(TEN)},
    ),
    "UrbanSound8K": PublicLayout(
        files(f"audio/fold{n % 2}/{n}.wav" for n in TEN)
        | {
            "metadata/U.csv": lines(
                "slice_file_name,fold,class", *(f"{n}.wav,{n % 2},{color(n)}" for n in TEN)
            )
        },
        "audio-classification",
        {"train": colors(TEN)},
    ),
    "Speech Commands": PublicLayout(
        files([*WORDS, "_background_noise_/pink.wav"])
        | {
            "validation_list.txt": lines(*WORDS[10:13]),
            "testing_list.txt": lines(*WORDS[13:]),
            "README.md": b"about",
        },
        "audio-classification",
        {"train": colors(TEN), "valid": colors(range(10, 13)), "test": colors(range(13, 16))},
    ),
    "CUB-200": PublicLayout(
        files(f"images/{color(n)}/{n}.jpg" for n in range(16))
        | {
            "images.txt": lines(*(f"{n} {color(n)}/{n}.jpg" for n in range(16))),
            "image_class_labels.txt": lines(*(f"{n} {n % 3}" for n in range(16))),
            "classes.txt": lines(*(f"{n} {color(n)}" for n in range(3))),
            "train_test_split.txt": lines(*(f"{n} {int(n < 10)}" for n in range(16))),
            "bounding_boxes.txt": lines(*(f"{n} 60.0 27.0 325.0 304.0" for n in range(16))),
            "parts/parts.txt": b"1 back\n",
        },
        "image-classification",
        {"train": colors(TEN), "test": colors(REST)},
    ),
    "GTSRB": PublicLayout(
        files([*(f"Train/{n % 3}/{n}.png" for n in TEN), *(f"Test/{n}.png" for n in REST), "Meta/0.png"])
        | {
            "Train.csv": lines("Width,ClassId,Path", *(f"8,{color(n)},Train/{n % 3}/{n}.png" for n in TEN)),
            "Test.csv": lines("Width,ClassId,Path", *(f"8,{color(n)},Test/{n}.png" for n in REST)),
            "Meta.csv": lines("Path,ClassId", "Meta/0.png,0"),
        },
        "image-classification",
        {"train": colors(TEN), "test": colors(REST)},
    ),
    "a competition": PublicLayout(
        files([*(f"train/{n}a.jpg" for n in TEN), *(f"test/{n}a.jpg" for n in REST)])
        | {
            "train.csv": lines("id,label", *(f"{n}a,{color(n)}" for n in TEN)),
            "sample_submission.csv": lines("id,label", *(f"{n}a,red" for n in REST)),
        },
        "image-classification",
        {"train": colors(TEN)},
    ),
}
