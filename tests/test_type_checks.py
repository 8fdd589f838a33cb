"""The types of the package are checked in tests."""

from collections.abc import Callable

import pytest
import torch
from beartype import beartype
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from foveal.ops.linear import linear
from tests.support.type_checks import EVERY, FIRST_CALLS, forget_calls, jaxtyped


def double(x: Float[Tensor, "B C"]) -> Float[Tensor, "C B"]:
    return 2 * x.mT


def fails(call: Callable[[], object]) -> bool:
    try:
        call()
    except TypeCheckError:
        return True
    return False


def test_functions_of_the_package_are_checked() -> None:
    with pytest.raises(TypeCheckError):
        linear(torch.ones(2), "weight", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [torch.ones(3), torch.ones(2, 2, dtype=torch.int64), "text"])
def test_the_first_calls_and_each_fiftieth_are_checked(wrong: object) -> None:
    checked = jaxtyped(double, typechecker=beartype)
    assert fails(lambda: checked(wrong))
    forget_calls()
    answers = []
    for call in range(2 * EVERY):
        answers.append(
            fails(lambda: checked(wrong)) if call == EVERY - 1 else fails(lambda: checked(torch.ones(2, 2)))
        )
    assert [call for call, failed in enumerate(answers) if failed] == [EVERY - 1]


def test_an_output_is_checked() -> None:
    def transposed(x: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        return x.mT

    checked = jaxtyped(transposed, typechecker=beartype)
    assert [fails(lambda: checked(torch.ones(2, 3))) for _ in range(FIRST_CALLS + 1)] == [True, True, False]
