"""Hooks of the site: links to files outside `docs/`, the pages of the reference, and the notebooks.

The pages in `docs/` are written to be read in the repository, where a link may lead to a source file. On the
site such a link leads to a copy of the file.
"""

import json
import posixpath
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import foveal
from foveal import layers, metrics, sklearn

METHODS = "    options:\n      members: [forward, project, fit]\n"
"""The methods that the reference of layers shows."""
INHERITED = "    options:\n      inherited_members: true\n"
"""Shows what a class has from its base class."""
RESULTS = {
    "foveal.api.results.table": ("Table",),
    "foveal.api.results.scores": ("Evaluation", "GeneratedTexts"),
    "foveal.api.results.picture": ("Picture",),
    "foveal.api.own_module.run": ("ModuleRun",),
    "foveal.core.callbacks": ("TrainingInfo",),
    "foveal.generation.text_stream": ("GeneratedText", "TextChunk"),
    "foveal.plugins.loading": ("Plugin",),
}
"""What functions of `foveal` return or pass to callbacks, by module."""
ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)")
"""The path of a link."""
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PAGES = {
    **{
        path: f"project/{path}"
        for path in ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "benchmarks/RESULTS.md")
    },
    **{path.relative_to(ROOT).as_posix(): f"notebooks/{path.stem}.md" for path in NOTEBOOKS},
}
"""Files outside `docs/` that are pages of the site, and their paths there."""
OWN_PATHS = {page: path for path, page in PAGES.items()}
LAYER_GROUPS = {
    "Mixers and cells": "foveal.layers.mixers",
    "Encoders": "foveal.encoders",
    "Heads": "foveal.heads",
    "Memory": "foveal.core",
    "Blocks": "foveal.layers.blocks",
    "Images": "foveal.layers.vision",
    "Series": "foveal.layers.series",
    "Audio": "foveal.layers.audio",
    "Other layers": "foveal.layers",
}
"""The headings of the reference of layers, and the packages below each; the first that fits is taken."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside `docs/`, the reference, and copies of the files that pages link to."""
    for path, page in PAGES.items():
        if not path.endswith(".ipynb"):
            files.append(File.generated(config, page, content=(ROOT / path).read_text("utf-8")))
    for notebook in NOTEBOOKS:
        for name, content in notebook_files(notebook):
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    for name, text in reference_pages():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    linked = {target for file in files.documentation_pages() for target in outside_links(file)}
    for path in sorted(linked - PAGES.keys()):
        files.append(File.generated(config, site_path(path), content=content_of(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links lead to files of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def site_link(link: re.Match[str]) -> str:
        if files.get_file_from_path(posixpath.join(folder, link[0])) is not None:
            return link[0]  # such as a picture of a notebook
        return posixpath.relpath(site_path(repository_path(page.file, link[0])), folder or ".")

    if page.file.src_uri.startswith("project/"):  # where a list may follow a line of text
        markdown = re.sub(r"^(?![-*] |  )(.+)\n(?=[-*] )", r"\1\n\n", markdown, flags=re.MULTILINE)
    return LINK.sub(site_link, markdown)


def outside_links(file: File) -> Iterator[str]:
    """Yield the paths, in the repository, of what a page links to outside `docs/`."""
    for link in LINK.findall(file.content_string):
        path = repository_path(file, link)
        if not path.startswith("docs/") and (ROOT / path).exists():  # no picture of a notebook
            yield path


def repository_path(file: File, link: str) -> str:
    """Return the path in the repository that a page's link leads to."""
    own = OWN_PATHS.get(file.src_uri, f"docs/{file.src_uri}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(own), link))


def site_path(path: str) -> str:
    """Return the path on the site of a path in the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"source/{path.lstrip('.')}.txt")  # MkDocs leaves out what begins with a dot


def content_of(path: Path) -> str:
    """Return the text of a file, or the names of the files in a folder."""
    if path.is_dir():
        return "".join(f"{file.name}{'/' * file.is_dir()}\n" for file in sorted(path.iterdir()))
    return path.read_text("utf-8")


def notebook_files(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yield the page of a notebook with its outputs, and the pictures among them."""
    parts: list[str] = []
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                picture = f"{path.stem}-{number}.png"
                yield picture, b64decode("".join(data["image/png"]))
                parts.append(f"![The output of the cell above]({picture})")
            else:
                text = "".join(data["text/plain"]).rstrip("\n")
                parts.append(f"```text\n{text}\n```")
    yield f"{path.stem}.md", "\n\n".join(parts)


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the pages of the reference."""
    names = [name for name in foveal.__all__ if not name.startswith("__")]
    yield "foveal", "# foveal\n\n" + entries("foveal", names)
    yield "metrics", "# foveal.metrics\n\n" + entries("foveal.metrics", dir(metrics))
    classifiers = entries("foveal.sklearn", sklearn.__all__, INHERITED)
    base_class = entries("foveal.sklearn.base", ["RunClassifier"])
    yield "sklearn", f"# foveal.sklearn\n\n{classifiers}{base_class}"
    results = "".join(entries(module, [*names], INHERITED) for module, names in RESULTS.items())
    yield "results", f"# Results\n\nWhat functions of `foveal` return, and pass to callbacks.\n\n{results}"
    groups: dict[str, list[str]] = {heading: [] for heading in LAYER_GROUPS}
    for name, module in sorted(layers._MODULES.items()):
        group = next(heading for heading, package in LAYER_GROUPS.items() if module.startswith(package))
        groups[group].append(name)
    sections = [
        f"## {heading}\n\n{entries('foveal.layers', members, METHODS)}" for heading, members in groups.items()
    ]
    yield "layers", "# foveal.layers\n\n" + "\n".join(sections)


def entries(module: str, names: list[str], options: str = "") -> str:
    """Return the directives of names."""
    return "".join(f"::: {module}.{name}\n{options}\n" for name in names)
