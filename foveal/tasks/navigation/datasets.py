"""The generated data set for navigation."""

from foveal.data.datasets.dataset_registry import DatasetEntry, add_dataset
from foveal.tasks.navigation.generated_episodes import make_episodes

GRID_WALKS = add_dataset(
    DatasetEntry(
        name="grid-walks",
        description="151,500 maps of 9 x 9 squares, each with an instruction and the path it means; computed",
        license="none: computed by a rule",
        size="49.5 MB",
        make=lambda _, log: make_episodes(log),
        revision="2",
    )
)
