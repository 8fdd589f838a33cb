"""The source of clips, from videos, animations, folders of frames and arrays."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from foveal.config import DataConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, RowIndices
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches, collate_examples
from foveal.data.core.rows import Row, SkippedPart, SkippedRow, usable_rows
from foveal.data.core.simple_features import SimpleFeatures
from foveal.data.core.standardize import Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_batches import BASELINE_SIDE
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.images.image_source import PixelSource
from foveal.data.pairs.target import Target
from foveal.data.video.clip_batches import ClipBatches, load_clip_frames
from foveal.data.video.clip_examples import ClipExamples, clip_statistics, small_clips
from foveal.data.video.clip_files import labeled_clips, unlabeled_clips
from foveal.data.video.clip_loading import DecodedClip, load_clip


class ClipSource(PixelSource):
    """A clip as the standardized pixels of its frames. The field `frames` of a row is (T, H, W, C).

    A frame that can't be decoded is listed as a skipped row. The other frames are used.
    """

    settings = (
        "data.encoding",
        "data.image.size",
        "data.image.channels",
        "data.max_length",
        "data.batch_tokens",
    )
    simple_features_in_words = f"the means and changes of {BASELINE_SIDE} x {BASELINE_SIDE} pixels"
    max_simple_features = 2 * 3 * BASELINE_SIDE**2
    same_label = "all of the {count:,} clips to train on have the label"
    place = "frame"

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        for row, clip in _read_clips(labeled_clips(part, target, config), config, skipped):
            value = row.fields[target.field]
            if target.each_place:
                if len(value) != clip.frames:
                    reason = f"{len(value)} labels for {clip.frames} frames; give each frame one label"
                    skipped.append(SkippedRow(row.location, reason))
                    continue
                value = [value[index] for index in clip.used]
            fields = {"name": row.fields["name"], target.field: value}
            yield Row(row.location, {"source": clip.content, "frames": clip.pixels, **fields}, clip.content)

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        for row, clip in _read_clips(unlabeled_clips(part), config, skipped):
            yield Row(row.location, {"source": row.fields["name"], "frames": clip.pixels})

    def simple_features(self, train: ClipExamples, held_out: ClipExamples) -> SimpleFeatures:
        return small_clips(train, BASELINE_SIDE), small_clips(held_out, BASELINE_SIDE)

    def targets(self, part: DataPart, target: Target[Any], config: DataConfig, most: int) -> list[Any]:
        rows = usable_rows(islice(labeled_clips(part, target, config), most), [])
        return [row.fields[target.field] for row in rows]

    def statistics(self, rows: Sequence[Row]) -> Statistics:
        return clip_statistics(rows)

    def encode(self, row: Row, processor: ImageProcessor, config: DataConfig) -> Any | str:
        return row.fields["frames"]

    def examples(
        self, rows: Sequence[Row], values: list[Any], processor: ImageProcessor, columns: Mapping[str, Column]
    ) -> ClipExamples:
        return ClipExamples.from_data(values, processor, columns)

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"frames": sum(examples.lengths("source"))}

    def train_batches(self, examples: Any, config: DataConfig, seed: int) -> Any:
        return ClipBatches(BucketedTrainBatches(examples, config.batch_tokens, seed), examples)

    def eval_batches(self, examples: Any, config: DataConfig) -> Any:
        return ClipBatches(BucketedEvalBatches(examples, config.batch_tokens), examples)

    def collate(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        return load_clip_frames(collate_examples(examples, rows), examples)


def _read_clips(
    rows: Iterator[Row | SkippedRow], config: DataConfig, skipped: list[SkippedRow]
) -> Iterator[tuple[Row, DecodedClip]]:
    """Yield rows with their decoded clips. Rows and frames that can't be read are added to `skipped`."""
    for row in usable_rows(rows, skipped):
        image = config.image
        clip = load_clip(row.fields.pop("frames"), image.size, image.channels, config.max_length)
        if isinstance(clip, str):
            skipped.append(SkippedRow(row.location, clip))
            continue
        skipped += [
            SkippedPart(f"{row.location}, {name}", f"{reason}; the other frames are used", row.location)
            for name, reason in clip.skipped_frames
        ]
        yield row, clip
