"""What a run generates, collected, and the files among it written."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.generation.events import Artifact, Chunk, GenerationEvent, Output, Summary
from foveal.generation.request import GenerateRequest
from foveal.store.durable import atomic_folder, atomic_write, write_synced
from foveal.ui.console import log, print_plain


def check_input(task: Any, sources: Any) -> Any:
    """Return the sources of generation: a path, or images or series in memory.

    Raises: UserError: they are texts in memory.
    """
    if task.source_kind == "text" and not isinstance(sources, str | Path):
        raise UserError("input is a file of texts; give a list of texts first: run.generate([...])")
    return sources


def collect_events(events: Iterable[GenerationEvent], request: GenerateRequest) -> dict[str, Any]:
    """Write the files among the events, and return the other events as JSON."""
    samples, result = list[Any](), dict[str, Any]()
    with ArtifactWriter(request) as files:
        for event in events:
            if isinstance(event, Output):
                samples.append(event.json)
            elif isinstance(event, Artifact):
                files.write(event)
            elif isinstance(event, Summary):
                result = dict(event.json)
    return ({"samples": samples} if samples else {}) | result


def stream_text(events: Iterable[GenerationEvent]) -> Iterator[str]:
    """Yield the pieces of a text as they are generated; of several texts each when it is finished."""
    is_live = False
    for event in events:
        if isinstance(event, Chunk):
            is_live = True
            yield event.text
        elif isinstance(event, Output) and not is_live:
            yield event.text


class ArtifactWriter:
    """Writes the files that `--out` and `--attention` name, each completely or not at all."""

    def __init__(self, request: GenerateRequest):
        self._paths = {"out": request.out, "attention": request.attention.attention}
        self._folders: dict[str, Path] = {}
        self._stack = ExitStack()
        self._written: dict[str, Path] = {}

    def __enter__(self) -> "ArtifactWriter":
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, artifact: Artifact) -> None:
        """Write a file, or a file of a new folder, which appears when all its files are written."""
        option, path = artifact.option, self._paths[artifact.option]
        assert path is not None
        self._written[option] = path
        if not artifact.name:
            atomic_write(path, artifact.content)
            return
        if option not in self._folders:
            self._folders[option] = self._stack.enter_context(atomic_folder(path))
        write_synced(self._folders[option] / artifact.name, artifact.content)

    def print_paths(self, is_result: bool) -> None:
        """Print the paths if they are the only result, else log them."""
        for option, path in self._written.items():
            if is_result:
                print_plain(str(path))
            else:
                log(f"{option}: {path}")
