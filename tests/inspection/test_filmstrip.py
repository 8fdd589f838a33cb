"""Strips of frames: their order, and what stands below them in which role."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np

from foveal.inspection.filmstrip.view import Filmstrip, FilmstripOptions, FilmstripView, filmstrip_payload
from foveal.inspection.panels import ImageRow, Images
from foveal.inspection.payload import Payload
from foveal.inspection.run_protocols import InspectedRun
from tests.support.clip_folders import CLIP_CONFIG, clip_folder, clip_table, prepare_clips, random_clip
from tests.support.image_folders import write_files
from tests.support.pair_formats import CLIP_LABEL

FRAMES = np.arange(3, dtype=np.uint8)[:, None, None, None] * 50 + np.zeros((3, 4, 4, 1), np.uint8)


def rows(*strips: Filmstrip) -> tuple[ImageRow, ...]:
    (images,) = filmstrip_payload("run", strips).panels
    assert isinstance(images, Images)
    return images.rows


def captions(part: Any) -> list[tuple[str, str]]:
    return [(caption.text, caption.role) for caption in part.captions]


def test_frames_stand_in_order_with_their_labels() -> None:
    (row,) = rows(Filmstrip("a.mp4", FRAMES, ["3-up", "3-up", "3-up"], ["3-up", "8-down", "3-up"]))
    assert [tile.pixels.mean() for tile in row.tiles if tile] == [0, 50, 100]
    assert [*map(captions, row.tiles)] == [
        [("3-up", "correct")],
        [("3-up", "incorrect"), ("8-down", "muted")],
        [("3-up", "correct")],
    ]
    assert row.captions == ()


def test_one_text_has_the_whole_row() -> None:
    text = "it moves up and bounces off the"
    unknown, known = rows(
        Filmstrip("a", FRAMES, [text], None), Filmstrip("b", FRAMES[:1], [text], ["it stays"])
    )
    assert captions(unknown) == [(text, "muted")]
    assert captions(known) == [(text, "incorrect"), ("it stays", "muted")]
    assert not any(tile.captions for tile in (*unknown.tiles, *known.tiles) if tile)


def test_facts_and_values_name_the_clips() -> None:
    payload = filmstrip_payload(
        "run", [Filmstrip("a", FRAMES, ["up", "down", "up"], None), Filmstrip("b", FRAMES, ["x"], ["y"])]
    )
    assert payload.facts == (
        ("source", "a"),
        ("output", "up down up"),
        ("source", "b"),
        ("output", "x"),
        ("right", "y"),
    )
    assert payload.values["clips"][0]["right"] is None


def shown(data: str, query: str | None) -> Payload:
    """Return the strips of a run that says `a` of each clip."""
    prepared = prepare_clips(CLIP_LABEL, data)
    train, rows = prepared.train, [*range(len(prepared.train))][::-1]
    sources, references = ([texts[row] for row in rows] for texts in (train.sources, train.references))
    run = Mock(spec=InspectedRun, processor=prepared.processor)
    run.task.data_format, run.task.has_classes, run.config.data = CLIP_LABEL, True, CLIP_CONFIG
    run.task.predicted_labels = lambda clips, progress: [["a"]] * len(clips)
    run.few_held_out.return_value = train.examples.subset(rows), sources, references
    return FilmstripView().compute(run, FilmstripOptions(query), print, lambda *_: None)


def named_clips(folder: Path) -> str:
    """Write three clips, whose table names them in another order, one with a backslash, and one not."""
    files = {
        name: content
        for number in range(3)
        for name, content in clip_folder(f"x/{number}", random_clip(number)).items()
    }
    return write_files(folder, files | {"metadata.csv": clip_table("label", [("x\\2", "b"), ("x/0", "a")])})


def test_each_clip_has_its_frames_and_the_label_of_its_name(tmp_path: Path) -> None:
    data = named_clips(tmp_path / "clips")
    payload = shown(data, data)
    (images,) = payload.panels
    assert isinstance(images, Images)
    for number, row in enumerate(images.rows):
        assert (np.stack([tile.pixels for tile in row.tiles if tile]) == random_clip(number)).all()
    clips = payload.values["clips"]
    assert [(Path(clip["source"]).name, clip["right"]) for clip in clips] == [
        ("0", "a"),
        ("1", None),
        ("2", "b"),
    ]


def test_held_out_clips_have_their_frames_and_labels(tmp_path: Path) -> None:
    payload = shown(named_clips(tmp_path / "clips"), None)
    (images,) = payload.panels
    assert isinstance(images, Images)
    assert [len(row.tiles) for row in images.rows] == [len(random_clip(0)), len(random_clip(2))]
    assert [clip["right"] for clip in payload.values["clips"]] == ["a", "b"]
