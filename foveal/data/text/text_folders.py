"""Texts to label in files of their own: a folder for each label, or without labels."""

from collections.abc import Iterator

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record
from foveal.data.core.rows import Row, SkippedRow, text_key, usable_rows, validate_rows
from foveal.data.files.data_part import DataPart
from foveal.data.files.folders import FILE_FIELD, read_folder
from foveal.data.files.split_names import is_document
from foveal.data.files.text_files import has_text_suffix, one_file_per_text, read_text_file


def read_texts_by_class(part: DataPart, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Read the text of each file, as `source`, and the name of the folder it is in, as `label`.

    Of the files with one name, but for the suffix, a `.txt` is read and the others are skipped.

    Raises: UserError: no folder has files, no file has text, or many are in another encoding than UTF-8.
    """
    name = part.listing.name

    def records() -> Iterator[Record]:
        for row in read_folder(part, ("label",), choose=one_file_per_text):
            fields = row.reason if isinstance(row, SkippedRow) else row.fields
            yield row.location.removeprefix(f"{name}, "), fields

    def check(fields: Fields) -> Fields | str:
        text = read_text_file(fields[FILE_FIELD], part.encoding)
        return text.reason or {"source": text.text, "label": fields["label"]}

    for row in usable_rows(validate_rows(name, records(), check), skipped):
        yield Row(row.location, row.fields, text_key(row.fields["source"]))
    names = [*part.listing.walk()]
    read = {*one_file_per_text(names)}
    reason = "beside a file of that name, which is read in its place; move it away"
    skipped.extend(SkippedRow(f"{name}, {file}", reason) for file in names if file not in read)


def read_texts(part: DataPart, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Read the text of each file of a folder as `source`. A README and a license are left out.

    Raises: UserError: no file has text.
    """
    count, first = 0, ""
    names = [name for name in sorted(part.listing.walk()) if not is_document(name)]
    for name in [*filter(has_text_suffix, names)] or names:
        file = part.listing.file(name)
        text = read_text_file(file, part.encoding)
        if text.reason:
            skipped.append(SkippedRow(str(file), text.reason))
            first = first or f"; the first: {file}: {text.reason}"
        else:
            count += 1
            yield Row(str(file), {"source": text.text})
    if not count:
        raise UserError(f"{part}: a folder with no text in it{first}")
