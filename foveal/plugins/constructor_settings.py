"""Settings of a part that is a plain class: the keyword arguments of its constructor, with their types."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from pydantic import create_model

from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.plugins.registry import file_of

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class NoSettings(StrictModel):
    """The section of a part without settings."""


def settings_of_constructor(part: Callable[..., Any], arguments: Sequence[str]) -> type[StrictModel]:
    """Return the settings of a class, or of a function: its parameters behind the first ones.

    The first ones are `arguments`, whose values come from the model. A parameter is a setting with the
    parameter's type and default. `Annotated[int, Field(gt=0, description="...")]` adds bounds and a meaning.

    Raises: UserError: the constructor takes other arguments, or a setting has no type or no default.
    """
    place = f"{file_of(part.__module__)}: {part.__name__}"
    parameters = [*inspect.signature(part).parameters.values()]
    first, rest = parameters[: len(arguments)], parameters[len(arguments) :]
    if len(first) < len(arguments) or any(each.kind not in POSITIONAL for each in first):
        raise UserError(f"{place}: its first arguments must be ({', '.join(arguments)})")
    function = part.__init__ if inspect.isclass(part) else part
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for each in rest:
        if each.kind not in (*POSITIONAL, inspect.Parameter.KEYWORD_ONLY):
            raise UserError(f"{place}: {each} can be no setting; name each argument")
        if each.default is inspect.Parameter.empty or each.name not in hints:
            raise UserError(
                f"{place}: the argument {each.name} is a setting, which needs a type and a default, as in "
                f"{each.name}: int = 1"
            )
        fields[each.name] = (hints[each.name], each.default)
    if not fields:
        return NoSettings
    return create_model(
        f"{part.__name__}Settings", __base__=StrictModel, __module__=part.__module__, **fields
    )
