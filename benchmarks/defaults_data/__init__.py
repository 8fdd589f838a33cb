"""Public data sets on which `foveal train DATA` without settings is compared with ten lines of scikit-learn.

Fifteen of five kinds were chosen before any result was known, from packages on which no preset was tuned.
Seven of the fifteen are held out for the last measurement: one of each kind and two more, drawn at random
(`random.Random(35)`).
"""

from benchmarks.defaults_data.data_set import DataSet
from benchmarks.defaults_data.pictures import PICTURES
from benchmarks.defaults_data.series import SERIES
from benchmarks.defaults_data.sounds import SOUNDS
from benchmarks.defaults_data.tags import TAGS
from benchmarks.defaults_data.texts import TEXTS

KINDS: dict[str, list[DataSet]] = {
    "texts": TEXTS,
    "series": SERIES,
    "pictures": PICTURES,
    "sounds": SOUNDS,
    "tags": TAGS,
}
DATA_SETS = {data_set.name: data_set for kind in KINDS.values() for data_set in kind}
