"""COCO: `annotations/captions_train2017.json` names the pictures in `train2017/`, often several times."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.json_rows import read_json_text
from foveal.data.files.split_names import split_of_name
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit

FOLDER, START = "annotations", "captions_"


def find(part: DataPart) -> Layout | None:
    if FOLDER not in part.listing.folders:
        return None
    splits: dict[SplitName, LayoutSplit] = {}
    for name in part.listing.below(FOLDER).files:
        folder = name.removeprefix(START).removesuffix(".json")
        split = split_of_name(folder)
        if name == f"{START}{folder}.json" and split and folder in part.listing.folders:
            table = part.path / FOLDER / name
            read = partial(_rows, table, part.encoding)
            splits[split] = LayoutSplit([table], part.path / folder, ["text"], read)
    if "train" not in splits:
        return None
    names = ", ".join(each.tables[0].name for each in splits.values())
    return Layout(f"{names} in {FOLDER} name the pictures, as those of COCO", splits)


def _rows(table: Path, encoding: str) -> Iterator[LayoutRow]:
    try:
        content = parse_json(read_json_text(table, encoding))
        names = {image["id"]: image["file_name"] for image in content["images"]}
        notes = [*content["annotations"]]
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{table}: not captions in the format of COCO ({error}); get the file again"
        ) from None
    for number, note in enumerate(notes, 1):
        origin = f"{table}, annotation {number}"
        try:
            yield LayoutRow(origin, [names[note["image_id"]], note["caption"].strip()])
        except (LookupError, TypeError, AttributeError) as error:
            yield LayoutRow(origin, f"no caption of a picture in the file ({error}); fix the annotation")
