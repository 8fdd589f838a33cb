"""Formats of files that are not read, with how to convert them, recognized by suffix or by first bytes."""

from foveal.data.files.file_bytes import read_first_bytes
from foveal.data.files.utf8 import AnyPath

PICTURE_HINT = "convert the pictures to .png or .jpg (ImageMagick: mogrify -format png *{suffix})"
SOUND_HINT = "convert the recordings to .flac or .wav (ffmpeg -i IN{suffix} OUT.flac)"
ARRAY_HINT = "save the arrays as .npz with numpy.savez"
TABLE_HINT = "save the table as .csv or .parquet"
UNREAD_SUFFIXES = {
    **dict.fromkeys(
        (".avif", ".heic", ".heif", ".jxl", ".jp2", ".svg", ".psd", ".tga", ".ico"), PICTURE_HINT
    ),
    **dict.fromkeys((".dds", ".exr", ".hdr", ".cr2", ".nef", ".dng"), PICTURE_HINT),
    **dict.fromkeys((".m4a", ".aac", ".wma", ".amr", ".caf", ".mid", ".midi"), SOUND_HINT),
    **dict.fromkeys((".npy", ".mat", ".h5", ".hdf5"), ARRAY_HINT),
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".arrow", ".feather", ".arff", ".db", ".sqlite"), TABLE_HINT),
    **dict.fromkeys(
        (".pkl", ".pickle"), "it could run code when opened; save the data as .csv, .jsonl or .npz"
    ),
    ".tar": "pack pictures as KEY.jpg, with KEY.cls, KEY.txt or KEY.json beside each, or unpack it, and "
    "give the file or folder in it",
    **dict.fromkeys((".tgz", ".bz2", ".xz", ".7z", ".rar"), "unpack it, and give the file or folder in it"),
    **dict.fromkeys((".xml", ".geojson", ".ipynb"), "write what is to be learned as .csv, .jsonl or .txt"),
    **dict.fromkeys((".pdf", ".docx", ".doc", ".odt", ".epub", ".rtf"), "save it as plain text (.txt)"),
}
"""Maps suffixes to how to mend the data."""
PICTURE_STARTS = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG": ".png",
    b"GIF8": ".gif",
    b"II*\0": ".tif",
    b"MM\0*": ".tif",
}
"""First bytes of picture files, and their suffixes."""
RIFF_KINDS = {b"WEBP": ".webp", b"WAVE": ".wav"}
SOUND_STARTS = {b"fLaC": ".flac", b"OggS": ".ogg", b"ID3": ".mp3"}
PICTURE_SUFFIXES = {*PICTURE_STARTS.values(), ".webp"}
BINARY_STARTS = {
    b"\xff\xfb": "a recording",
    b"PK\3\4": "a zip or .npz",
    b"\x1f\x8b": "packed by gzip",
    b"BZh9": "packed by bzip2",
    b"\xfd7zXZ": "packed by xz",
    b"PAR1": "a Parquet table",
    b"\x93NUMPY": "an array",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF",
    **dict.fromkeys((b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"), "a pickle"),
}
"""First bytes of other files that are no text, and words for the files."""


def unread_format_hint(name: str) -> str:
    """Return how to mend data in a format that is not read, by its suffix. Empty for other suffixes."""
    suffix = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    hint = UNREAD_SUFFIXES.get(suffix, "").replace("{suffix}", suffix)
    return f"{suffix} is not read: {hint}" if hint else ""


def pickle_hint(file: AnyPath) -> str:
    """Return how to mend a pickle without suffix, such as those of CIFAR-10. Empty for other files."""
    start = b"" if file.suffix else read_first_bytes(file, 2)
    is_pickle = start[:1] == b"\x80" and start[1:] in (b"\2", b"\3", b"\4", b"\5")
    return f"a pickle, which is not read: {UNREAD_SUFFIXES['.pkl']}" if is_pickle else ""


def missing_suffix(file: AnyPath) -> str:
    """Return the suffix that a picture or recording without suffix should have. Empty for other files."""
    return "" if file.suffix else _media_suffix(read_first_bytes(file, 12))


def binary_kind(file: AnyPath) -> str:
    """Return what a file that is no text by its first bytes is. Empty for other files."""
    start = read_first_bytes(file, 1 << 12)
    if b"\0" not in start and "\ufffd" not in start.decode("utf-8", "replace")[:-4]:
        return ""
    if suffix := _media_suffix(start):
        return "a picture" if suffix in PICTURE_SUFFIXES else "a recording"
    if start[:2] == b"BM" and start[6:10] == b"\0\0\0\0":
        return "a picture"
    if start[4:8] == b"ftyp":
        return "a video or recording"
    return next((kind for first, kind in BINARY_STARTS.items() if start.startswith(first)), "")


def _media_suffix(start: bytes) -> str:
    """Return the suffix of a picture or recording with the first bytes `start`. Empty for other bytes."""
    if start.startswith(b"RIFF"):
        return RIFF_KINDS.get(start[8:12], "")
    starts = PICTURE_STARTS | SOUND_STARTS
    return next((suffix for first, suffix in starts.items() if start.startswith(first)), "")
