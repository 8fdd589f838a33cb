"""Commands that bring tables and texts beside media files into the form that is read: `metadata.csv`."""

from foveal.data.files.data_part import DataPart


def backslash_hint(part: DataPart) -> str:
    """Say that most files have a backslash in their names, where folders are meant. Empty if they don't."""
    if not part.is_disk_folder or part.table is not None:
        return ""
    names = [name for name in part.first_files if "\\" in name]
    if 2 * len(names) <= len(part.first_files):
        return ""
    return (
        f"the names of files, such as {names[0]}, have backslashes in place of folders; give the zip itself, "
        "or unpack it with 7z x"
    )


def header_hint(columns: tuple[str, ...]) -> str:
    """Say how to mend the header of a metadata table without a column of file names. Empty if unknown."""
    similar = [name for name in columns if name.lower().replace("_", "") in ("filename", "file", "path")]
    if similar:
        return f"rename the column '{similar[0]}' to file_name"
    if any("|" in name for name in columns) or (len(columns) > 1 and columns[0].startswith("LJ")):
        return (
            "if it has no header, as LJSpeech's: awk -F'|' 'BEGIN {print \"file_name|text\"} "
            '{print "wavs/" $1 ".wav|" $NF}\' metadata.csv > new.csv && mv new.csv metadata.csv'
        )
    return ""
