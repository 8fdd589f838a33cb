"""COCO: `annotations/captions_train2017.json` names the pictures in `train2017/`, often several times."""

from collections.abc import Iterator
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.split_names import split_of_name
from foveal.data.layouts.layout import Layout, LayoutSplit

FOLDER, START = "annotations", "captions_"


def find(part: DataPart) -> Layout | None:
    if FOLDER not in part.listing.folders:
        return None
    splits: dict[SplitName, LayoutSplit] = {}
    for name in part.listing.below(FOLDER).files:
        folder = name.removeprefix(START).removesuffix(".json")
        split = split_of_name(folder)
        if name == f"{START}{folder}.json" and split and folder in part.listing.folders:
            splits[split] = _split(part.path / FOLDER / name, part.path / folder)
    if "train" not in splits:
        return None
    names = ", ".join(each.tables[0].name for each in splits.values())
    return Layout(f"{names} in {FOLDER} name the pictures, as those of COCO", splits)


def _split(table: Path, folder: Path) -> LayoutSplit:
    return LayoutSplit([table], folder, ["text"], lambda: _rows(table))


def _rows(table: Path) -> Iterator[tuple[str, str]]:
    try:
        content = parse_json(table.read_text("utf-8"))
        names = {image["id"]: image["file_name"] for image in content["images"]}
        yield from ((names[each["image_id"]], each["caption"].strip()) for each in content["annotations"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"{table}: not captions in the format of COCO ({error}); get the file again"
        ) from None
