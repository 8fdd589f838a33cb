"""Small pictures with questions about them, for tests."""

import json
from pathlib import Path
from typing import Any

from tests.support.image_folders import encode_png, random_images, write_files

COLOURS = ("red", "green", "blue")


def question_rows(count: int, each: int = 3, **more: Any) -> list[dict[str, Any]]:
    """Return `each` rows for each of `count` pictures, with the columns `more`."""
    return [
        {
            "file_name": f"{number}.png",
            "question": f"what is thing {turn}?" if turn else "what colour?",
            "answer": COLOURS[(number + turn) % 3],
            **more,
        }
        for number in range(count)
        for turn in range(each)
    ]


def question_files(rows: list[dict[str, Any]], count: int) -> dict[str, bytes]:
    files = {f"{number}.png": encode_png(picture) for number, picture in enumerate(random_images(count))}
    return files | {"metadata.jsonl": "\n".join(map(json.dumps, rows)).encode()}


def write_question_rows(path: Path, rows: list[dict[str, Any]], count: int) -> str:
    """Write the rows to a folder or zip."""
    return write_files(path, question_files(rows, count))
