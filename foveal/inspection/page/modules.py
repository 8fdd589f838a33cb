"""The modules and the style of the page: as files for the server, and as one script for a report."""

import re
from functools import cache
from importlib.resources import files

STATIC = files(__package__) / "static"
IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=async function|function|class|const)", re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*\n", re.MULTILINE | re.DOTALL)
INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)
CONTENT_TYPES = {".js": "text/javascript", ".css": "text/css"}


@cache
def static_files() -> dict[str, tuple[str, bytes]]:
    """Return type and content of the files that the page loads, by name."""
    names = [(path.name, "." + path.name.rpartition(".")[2]) for path in STATIC.iterdir()]
    return {
        name: (CONTENT_TYPES[ending], (STATIC / name).read_bytes())
        for name, ending in sorted(names)
        if ending in CONTENT_TYPES
    }


def module_text(name: str) -> str:
    """Return the source of a module."""
    return static_files()[f"{name}.js"][1].decode("utf-8")


def import_order(entry: str) -> list[str]:
    """Return a module and all that it imports, each after those that it imports."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for imported in IMPORT.findall(module_text(name)):
                visit(imported)
            order.append(name)

    visit(entry)
    return order


@cache
def one_script(entry: str) -> str:
    """Return a module with all that it imports as one script. No two modules define the same name."""
    return "\n".join(map(_script_part, import_order(entry)))


def _script_part(name: str) -> str:
    """Return a module without imports, the word `export`, comments and indentation."""
    text = EXPORT.sub("", IMPORT.sub("", module_text(name)))
    return INDENTATION.sub("", COMMENT.sub("", text))


def style_sheet() -> str:
    """Return the style of the page."""
    return static_files()["style.css"][1].decode("utf-8")


def index_page() -> str:
    """Return the page that the server shows. All else comes from its modules."""
    preloaded = "\n".join(
        f'<link rel="modulepreload" href="static/{name}.js">' for name in import_order("app")
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Foveal</title>
<link rel="stylesheet" href="static/style.css">
{preloaded}
<script type="module" src="static/app.js"></script>
</head>
<body>
<noscript>This page is drawn by its script, which this browser does not run.</noscript>
</body>
</html>
"""
