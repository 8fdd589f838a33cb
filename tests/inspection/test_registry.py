"""Views are found by a walk over packages, and their options are their own."""

from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from foveal import inspection, tasks
from foveal.core.errors import UserError
from foveal.inspection.view import View
from foveal.inspection.registry import find_views, register_view

MADE_VIEW = '''
from dataclasses import dataclass
from foveal.inspection.view import View
from foveal.inspection.registry import register_view

@dataclass(frozen=True)
class Options:
    depth: int = 3
    """How deep."""

@register_view
class MadeView(View):
    name, summary, Options = "made", "A view in a single new file.", Options
    def compute(self, run, options, log, progress): ...
    def plot(self, result): ...
'''


def test_each_view_says_what_it_is() -> None:
    views = find_views(inspection, tasks)
    assert [*views] == sorted(views)
    assert sum(view.is_default for view in views.values()) == 1
    for name, view in views.items():
        assert view.name == name
        assert view.summary.endswith(".")
        assert is_dataclass(view.Options)
        assert all(
            field.default is None or isinstance(field.default, (int, str)) for field in fields(view.Options)
        )


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("file", ["made.py", "made/view.py"])
def test_a_new_file_is_a_new_view(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = f"views_{len(file)}"
    path = tmp_path / package / file
    path.parent.mkdir(parents=True)
    for folder in {path.parent, tmp_path / package}:
        (folder / "__init__.py").touch()
    path.write_text(MADE_VIEW)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_views(import_module(package))["made"].Options().depth == 3


@pytest.mark.usefixtures("own_registries")
def test_a_name_is_taken_once() -> None:
    view: type[View[Any, Any]] = type(find_views(inspection)["confusion"])
    other = type("Other", (view,), {"__module__": __name__})
    with pytest.raises(UserError, match=r"test_registry\.py: the view confusion is one of Foveal's own"):
        register_view(other)
