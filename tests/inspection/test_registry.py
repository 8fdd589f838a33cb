"""Views are found by a walk over packages, and their options are their own."""

from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.inspection.registry import VIEWS, register_view, view_modules
from foveal.inspection.view import View
from foveal.studies.check.view import options_without_help

MADE_VIEW = '''
from dataclasses import dataclass
from foveal.inspection.view import View
from foveal.inspection.registry import register_view

@dataclass(frozen=True)
class Options:
    depth: int = 3
    """How deep."""

@register_view("made")
class MadeView(View[Options]):
    summary, Options = "A view in a single new file.", Options
    def compute(self, run, options, log, progress): ...
'''


@pytest.mark.parametrize("name", [*VIEWS])
def test_each_view_says_what_it_is(name: str) -> None:
    view = VIEWS[name]
    assert view.name == name
    assert view.summary.endswith(".")
    assert is_dataclass(view.Options)
    params: Any = vars(view.Options)["__dataclass_params__"]
    assert params.frozen
    for field in fields(view.Options):
        assert field.default is None or isinstance(field.default, (int, float, str)), field.name
    assert options_without_help(view.Options) == []


def test_one_view_is_the_default() -> None:
    assert sum(view.is_default for _, view in VIEWS.items()) == 1


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
    for module in view_modules(package):
        import_module(module)
    assert VIEWS["made"].Options().depth == 3
    assert VIEWS["made"].name == "made"


@pytest.mark.usefixtures("own_registries")
def test_a_name_is_taken_once() -> None:
    other = type("Other", (type(VIEWS["confusion"]),), {"__module__": __name__})
    with pytest.raises(UserError, match=r"test_registry\.py: the view confusion is one of Foveal's own"):
        register_view("confusion")(other)


def make_view(**parts: Any) -> type:
    """Return a class of a view, right but for the given parts."""
    right = {"summary": "A view.", "Options": type(VIEWS["confusion"]).Options, "compute": lambda *_: None}
    return type("Made", (View,), {"__module__": __name__} | right | parts)


@dataclass(frozen=True)
class NoDefault:
    depth: int


@dataclass(frozen=True)
class CommonName:
    out: str = ""


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (object, "expected a class below"),
        (make_view(compute=View.compute), "has no method compute"),
        (make_view(summary=None), "has no summary, a text of one line"),
        (make_view(Options=None), "Options is a dataclass, with a default for each option"),
        (make_view(Options=NoDefault), "the option depth has no default"),
        (make_view(Options=CommonName), "the option out is one of every view; rename it"),
    ],
)
def test_wrong_classes_are_refused_in_one_line(view: Any, problem: str) -> None:
    with pytest.raises(UserError, match=f": the view wrong: {problem}") as error:
        register_view("wrong")(view)
    assert "\n" not in str(error.value)
