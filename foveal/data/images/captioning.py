"""Images with a text for each: a folder or zip with metadata, to pixels and tokens."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.examples import Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import PictureForm, Pictures, open_seen, seen_files, statistics_of
from foveal.data.images.image_files import captioned_pictures
from foveal.data.images.image_rows import decoded
from foveal.data.text.length_limit import FILE as ROOM
from foveal.data.text.length_limit import Room, read_room
from foveal.data.text.special_tokens import Marks
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer


@dataclass(frozen=True)
class CaptionInputs:
    """What a model sees of images, the statistics of their channels and the `size` of the square in pixels;
    and the tokenizer of their texts. `room` says how long those may become."""

    statistics: Statistics
    size: int
    target: Tokenizer
    room: Room

    @property
    def source(self) -> Statistics:
        """What the encoder needs."""
        return self.statistics

    def encode_target(self, text: str) -> Ids:
        return np.append(self.target.encode_known(text)[0], Marks(self.target.size).stop)

    def told(self, columns: Mapping[str, Tensor]) -> str:
        """The text of one image of a batch."""
        tokens: list[int] = columns["target"].tolist()
        return self.target.decode(tokens[: tokens.index(Marks(self.target.size).stop)])

    def files(self) -> dict[str, bytes]:
        text = {f"target/{FILE}": self.target.to_json().encode(), ROOM: self.room.to_json().encode()}
        return seen_files(self) | text


class CaptionForm(PictureForm):
    """A `Form`. An image with several texts is several rows, which are of one part, since their `source` is
    the same."""

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """The images at a path with their texts: fields `source` (the sha256 of the pixels), `picture`
        (H, W, C), the `name` of the file and `target`."""
        for row in decoded(captioned_pictures(data, config.column), config.image, aside):
            source, picture, name, text = (
                row.fields[field] for field in ("content", "picture", "name", "label")
            )
            yield Row(row.place, {"source": source, "picture": picture, "name": name, "target": text.strip()})

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> CaptionInputs:
        texts = [row.fields["target"] for row in rows]
        target = make_tokenizer(config.tokenizer, config.vocabulary, texts)
        room = Room.of_texts(target, texts, config.longest)
        return CaptionInputs(taken.source or statistics_of(rows), config.image.size, target, room)

    def encode(
        self, rows: list[Row], inputs: CaptionInputs, config: DataConfig, aside: list[Aside]
    ) -> Part[Pictures]:
        """A row for each text; column `target` are its tokens with their stop."""

        def encoded(row: Row) -> Ids | str:
            target = inputs.encode_target(row.fields["target"])
            if len(target) > config.longest:
                return f"{len(target)} tokens, and data.longest={config.longest}: raise it to use the row"
            return target

        kept, targets = keep(rows, encoded, aside)
        wanted = ("name", "target", "source")
        names, texts, contents = ([row.fields[name] for row in kept] for name in wanted)
        pictures = (row.fields["picture"] for row in kept)
        examples = Pictures.of(pictures, inputs, target=Ragged.from_rows(targets))
        sizes = {
            "images": len(set(contents)),
            "target_tokens": sum(examples.lengths("target")),
            "characters": sum(map(len, texts)),
        }
        return Part(names, texts, examples, [], sizes, hashed(zip(contents, texts, strict=True)), contents)

    def open_inputs(self, folder: Path) -> CaptionInputs:
        """What `CaptionInputs.files` gave, below `folder`."""
        return CaptionInputs(*open_seen(folder), load_tokenizer(folder / "target"), read_room(folder))
