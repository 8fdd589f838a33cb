"""The options of a view as a form, and its fields as options, by the rules of the command line."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, NamedTuple

import cyclopts
from cyclopts import App, Parameter

from foveal.api.view import AnyView
from foveal.core.errors import UserError

FieldKind = Literal["text", "number", "choice", "switch"]
FILE_OPTIONS = ("data", "query")
"""Options that name a file, which the page can send."""
INPUT_OPTIONS = ("data", "row", "text", "query")
"""Options that choose an input. The page keeps them when another view is chosen."""


class OptionField(NamedTuple):
    """A field of the form."""

    name: str
    kind: FieldKind
    help: str
    default: str
    choices: list[str]
    takes_file: bool
    is_input: bool


def _parser(view: AnyView) -> App:
    def parse(*, options: Any = view.Options()) -> Any:  # noqa: B008
        return options

    parse.__annotations__ = {"options": Annotated[view.Options, Parameter(name="*")]}
    parser = App(name=view.name, version_flags=(), help_flags=())
    parser.default(parse)
    return parser


def option_fields(view: AnyView) -> list[OptionField]:
    """Return the fields of the form for a view's options."""
    # The field `with_` is the option `--with`.
    defaults = {field.name.rstrip("_"): field.default for field in fields(view.Options)}
    arguments = _parser(view).assemble_argument_collection(parse_docstring=True)
    made = []
    for argument in arguments:
        name = argument.name.removeprefix("--").replace("-", "_")
        if not argument.show or name not in defaults:
            continue
        choices = [str(choice) for choice in argument.get_choices() or ()]
        default = defaults[name]
        made.append(
            OptionField(
                name,
                _kind(argument.hint, choices),
                str(argument.parameter.help or ""),
                "" if default is None or default is MISSING else _as_text(default),
                choices,
                name in FILE_OPTIONS,
                name in INPUT_OPTIONS,
            )
        )
    return made


def _kind(hint: Any, choices: list[str]) -> FieldKind:
    if choices:
        return "choice"
    if hint is bool:
        return "switch"
    return "number" if hint in (int, float) else "text"


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def parse_options(view: AnyView, values: Mapping[str, str]) -> Any:
    """Return the options of a view from the texts of a form. A field that is empty has its default.

    Raises: UserError: a value does not fit.
    """
    known = {field.name: field for field in option_fields(view)}
    tokens = []
    for name, text in values.items():
        if name not in known:
            raise UserError(f"{name}: the view {view.name} has no such option")
        if text == "" or text == known[name].default:
            continue
        option = f"--{name.replace('_', '-')}"
        if known[name].kind == "switch":
            tokens.append(option if text == "true" else f"--no-{name.replace('_', '-')}")
        else:
            tokens.append(f"{option}={text}")
    parser = _parser(view)
    try:
        command, bound, _ = parser.parse_args(tokens, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        raise UserError(" ".join(str(error).split())) from None
    return command(*bound.args, **bound.kwargs)
