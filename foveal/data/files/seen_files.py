"""The words that tell a user which files were seen where."""

from foveal.data.files.data_part import DataPart
from foveal.data.files.sidecars import TEXT_SUFFIX
from foveal.data.files.split_names import list_names


def describe_files(part: DataPart, files: str) -> str:
    """Return a clause that says where `files` were seen."""
    if not part.is_folder:
        return f"there are {files} in {part.path.name}"
    if part.table is not None:
        return f"there are {files} with {part.table.name}"
    folders = part.filled_folders
    where = f"in the folders {list_names(folders)}{part.empty_folders}" if folders else "in a folder"
    unread = [suffix for suffix in part.sidecars if suffix != TEXT_SUFFIX]
    beside = f", with a {TEXT_SUFFIX} beside each" if TEXT_SUFFIX in part.sidecars else ""
    beside += ", many of which are equal" if part.has_repeated_texts else ""
    beside += f" ({' and '.join(unread)} beside them not read)" if unread else ""
    return f"there are {files} {where}{beside}"
