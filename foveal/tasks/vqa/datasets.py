"""The data sets of the catalog with questions about images."""

from foveal.data.datasets.dataset_registry import DatasetEntry, add_dataset, without_log
from foveal.data.datasets.package_download import Wheel
from foveal.tasks.vqa.easy_vqa import easy_vqa
from foveal.tasks.vqa.shape_dialogs import make_dialogs

EASY_VQA = add_dataset(
    DatasetEntry(
        name="easy-vqa",
        description="48,248 questions about 5,000 images of a shape (easy-VQA, Zhou 2019), with 13 answers",
        license="MIT",
        size="5.5 MB",
        make=without_log(easy_vqa),
        package=Wheel(
            package="easy-vqa",
            version="1.0",
            sha256="fcb51b309b78c7b00f97b64cdbcbcf5c105f94da1b39c0796cee5a787c4f650f",
            files="easy_vqa/data/*",
        ),
        revision="2",
    )
)
SHAPE_DIALOG = add_dataset(
    DatasetEntry(
        name="shape-dialog",
        description="189,000 questions in dialogs about 31,500 scenes, most of them about `it`; computed",
        license="none: computed by a rule",
        size="33 MB",
        make=lambda _, log: make_dialogs(log),
        revision="2",
    )
)
