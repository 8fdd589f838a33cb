"""Images with nothing beside them, as levels from 0 to 1."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import PictureForm, Pictures, open_seen, seen_files
from foveal.data.images.image_files import unlabelled_pictures
from foveal.data.images.image_rows import decoded


@dataclass(frozen=True)
class UnlabelledInputs:
    """`Seen`: black is 0 and white 1, whatever the images are."""

    statistics: Statistics
    size: int

    def told(self, columns: Mapping[str, Tensor]) -> str:
        """Nothing is known of an image."""
        return ""

    def files(self) -> dict[str, bytes]:
        return seen_files(self)


class UnlabelledForm(PictureForm):
    """A `Form`; labels, if there are any, are not looked at."""

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """The images at a path: fields `source` (the sha256 of the pixels), `picture` (H, W, C), and
        the `name` of the file."""
        for row in decoded(unlabelled_pictures(data), config.image, aside):
            yield Row(row.place, {"source": row.fields["content"], **row.fields})

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> UnlabelledInputs:
        channels = config.image.channels
        return UnlabelledInputs(Statistics((0.0,) * channels, (255.0,) * channels), config.image.size)

    def encode(
        self, rows: list[Row], inputs: UnlabelledInputs, config: DataConfig, aside: list[Aside]
    ) -> Part[Pictures]:
        names, contents = ([row.fields[name] for row in rows] for name in ("name", "source"))
        pictures = Pictures.of((row.fields["picture"] for row in rows), inputs)
        return Part(names, [], pictures, [], {}, hashed(contents), contents)

    def open_inputs(self, folder: Path) -> UnlabelledInputs:
        """What `UnlabelledInputs.files` gave, below `folder`."""
        return UnlabelledInputs(*open_seen(folder))
