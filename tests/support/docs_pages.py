"""The pages of the documentation."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def pictures(page: Path) -> dict[str, str]:
    """Return the descriptions of a page's pictures by the names of their files."""
    found = re.findall(r"!\[([^\]]*)\]\((?:\.\./)*pictures/([\w.-]+)\)", page.read_text("utf-8"))
    return {name: description for description, name in found}
