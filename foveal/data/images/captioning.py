"""Images with a text for each: a folder or zip with metadata, to pixels and tokens."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.examples import RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_examples import (
    ImageExamples,
    ImageFormat,
    image_processor_files,
    image_statistics,
    load_statistics_and_size,
)
from foveal.data.images.image_files import captioned_images
from foveal.data.images.image_rows import load_row_images
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer


@dataclass(frozen=True)
class CaptioningProcessor:
    """What a model sees of images, the statistics of their channels and the `size` of the square in pixels;
    and the tokenizer of their texts. `length_limit` says how long those may become."""

    statistics: Statistics
    size: int
    target: Tokenizer
    length_limit: LengthLimit

    @property
    def source(self) -> Statistics:
        """What the encoder needs."""
        return self.statistics

    def encode_target(self, text: str) -> TokenIds:
        return np.append(self.target.encode_known(text)[0], SpecialTokens(self.target.size).eos)

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """The text of one image of a batch."""
        tokens: list[int] = columns["target"].tolist()
        return self.target.decode(tokens[: tokens.index(SpecialTokens(self.target.size).eos)])

    def files(self) -> dict[str, bytes]:
        text = {
            f"target/{TOKENIZER_FILE}": self.target.to_json().encode(),
            LENGTH_LIMIT_FILE: self.length_limit.to_json().encode(),
        }
        return image_processor_files(self) | text


class CaptioningFormat(ImageFormat):
    """A `DataFormat`. An image with several texts is several rows, which are of one part, since their
    `source` is the same."""

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """The images at a path with their texts: fields `source` (the sha256 of the pixels), `picture`
        (H, W, C), the `name` of the file and `target`."""
        for row in load_row_images(captioned_images(part, config.text), config.image, skipped):
            source, picture, name, text = (
                row.fields[field] for field in ("content", "picture", "name", "label")
            )
            yield Row(
                row.location, {"source": source, "picture": picture, "name": name, "target": text.strip()}
            )

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> CaptioningProcessor:
        texts = [row.fields["target"] for row in rows]
        target = make_tokenizer(config.tokenizer, config.vocab_size, texts)
        room = LengthLimit.from_texts(target, texts, config.max_length)
        return CaptioningProcessor(reused.source or image_statistics(rows), config.image.size, target, room)

    def encode(
        self, rows: list[Row], processor: CaptioningProcessor, config: DataConfig, skipped: list[SkippedRow]
    ) -> SplitData[ImageExamples]:
        """A row for each text; column `target` are its tokens with their stop."""

        def encoded(row: Row) -> TokenIds | str:
            target = processor.encode_target(row.fields["target"])
            if len(target) > config.max_length:
                return (
                    f"{len(target)} tokens, and data.max_length={config.max_length}: raise it to use the row"
                )
            return target

        kept, targets = encode_or_skip(rows, encoded, skipped)
        wanted = ("name", "target", "source")
        names, texts, contents = ([row.fields[name] for row in kept] for name in wanted)
        pictures = (row.fields["picture"] for row in kept)
        examples = ImageExamples.from_data(pictures, processor, target=RaggedArray.from_rows(targets))
        sizes = {
            "images": len(set(contents)),
            "target_tokens": sum(examples.lengths("target")),
            "characters": sum(map(len, texts)),
        }
        return SplitData(
            names, texts, examples, [], sizes, content_hash(zip(contents, texts, strict=True)), contents
        )

    def load_processor(self, folder: Path) -> CaptioningProcessor:
        """What `CaptioningProcessor.files` gave, below `folder`."""
        return CaptioningProcessor(
            *load_statistics_and_size(folder), load_tokenizer(folder / "target"), load_length_limit(folder)
        )
