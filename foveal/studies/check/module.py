"""Check of a module of the user's own: the laws that make sense for what its `forward` takes."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.errors import FAILURES, UserError
from foveal.laws import source_laws
from foveal.laws.law import require_same_rows
from foveal.laws.source_laws import SourceTrial
from foveal.studies.check.check import Target
from foveal.studies.check.example_sources import LONGEST
from foveal.studies.check.law import DEFAULT, PATHS, ComputePath, Law, check_laws, on_path
from foveal.studies.check.module_inputs import (
    LENGTHS,
    STATES,
    ModuleInput,
    argument,
    check_arguments,
    find_input,
    outputs,
)
from foveal.studies.check.precision import PRECISIONS, laws_of_precision

EXPECTED = ("causal", "set")
"""What the user may expect of a module: that no output sees later inputs, or that their order is unknown."""


def module_target(
    name: str, module: nn.Module, given: ModuleInput | None, expected: frozenset[str]
) -> Target:
    """Return a module of the user's own. `given` are its inputs, if the user has said what they are.

    Raises: UserError: it can't be called with one input, or what it takes is unknown.
    """
    if unknown := expected - {*EXPECTED}:
        raise UserError(f"--expect {', '.join(sorted(unknown))}: expected {' or '.join(EXPECTED)}")
    module = module.eval()
    check_arguments(module, name)
    taken = find_input(module, name, given)
    checked = ModuleCheck(module, taken, expected)
    part = type(module).__name__
    notes = f"{name} is given {taken}", *_notes(module)
    return Target(name, f"the module {part}", check_laws(part, checked.laws), notes)


def _notes(module: nn.Module) -> Iterator[str]:
    layers = (type(each).__name__ for each in module.modules() if _reads_time_first(each))
    for layer in [*dict.fromkeys(layers)]:
        yield f"a torch.nn.{layer} without batch_first=True takes the first axis for the sequence"


def _reads_time_first(layer: nn.Module) -> bool:
    return isinstance(layer, nn.RNNBase) and not layer.batch_first


class ModuleCheck:
    """The laws of a module that takes some inputs."""

    def __init__(self, module: nn.Module, taken: ModuleInput, expected: frozenset[str]):
        self.module, self.taken, self.expected = module, taken, expected
        self.lengths, self.state = argument(module, LENGTHS), argument(module, STATES)

    def laws(self) -> Iterator[Law]:
        """Yield the laws."""
        trials = {path: self._trial(path) for path in PATHS if path is DEFAULT or self._runs_in(path)}
        first = next(iter(trials.values()))
        result = first.run(first.source, None)
        _, state = outputs(first.model, _like(first.model, first.source))
        self.returns_state = state is not None
        self.each_place = self.taken.has_places and result.dim() > 2 and result.shape[1] == LONGEST
        longest = LONGEST if self.taken.has_places else 0

        def law(name: str, check: Callable[[Any, int], object], reason: str = "") -> Law:
            return Law(name, on_path(check, trials), longest, tuple(trials), reason)

        yield law("keeps nothing between calls", source_laws.keeps_nothing)
        yield law("other rows change nothing", source_laws.batch)
        reason = "" if self.lengths else "forward takes no lengths"
        yield law("padding changes nothing", source_laws.padding, reason)
        yield law("more padding changes nothing", source_laws.more_padding, reason)
        yield law("pieces equal the whole", self._pieces, self._why_no_pieces())
        yield law("sees no future", source_laws.causality, self._why_not_causal())
        order = partial(source_laws.permutation, each_place=self.each_place)
        yield law("the order of places changes nothing", order, self._why_no_set())
        yield law("every parameter learns", source_laws.every_parameter_learns)
        yield from laws_of_precision(self.module, self._logits, None, PRECISIONS)

    def _runs_in(self, path: ComputePath) -> bool:
        """Return whether the module computes in the precision of a path."""
        try:
            trial = self._trial(path)
            with path.context(), torch.no_grad():
                return trial.run(trial.source, None).dtype == path.dtype
        except FAILURES:  # the user's code may make tensors of float32 itself
            return False

    def _trial(self, path: ComputePath) -> SourceTrial:
        module = deepcopy(self.module).to(path.dtype)
        source, has_places = self.taken.make(), self.taken.has_places
        return SourceTrial(module, self._outputs, source, has_places, path.tolerance, bool(self.lengths))

    def _outputs(self, module: nn.Module, source: Tensor, lengths: Tensor | None, rows: Tensor) -> Tensor:
        named = {self.lengths: lengths} if self.lengths and lengths is not None else {}
        result, _ = outputs(module, _like(module, source), **named)
        if lengths is not None and result.dim() > 2 and result.shape[1] == source.shape[1]:
            behind = torch.arange(source.shape[1]) >= lengths[:, None]
            result = result.masked_fill(behind.view(*behind.shape, *(1,) * (result.dim() - 2)), 0.0)
        return result

    def _logits(self, module: Any) -> Tensor:
        return self._outputs(module, self.taken.make(), None, torch.arange(1))

    def _pieces(self, trial: SourceTrial, length: int) -> None:
        """Check that inputs in two calls have the outputs that they have in one.

        Raises: LawBroken: they have others.
        """
        source = _like(trial.model, trial.cut(length))
        whole, _ = outputs(trial.model, source)
        for cut in range(1, length):
            first, state = outputs(trial.model, source[:, :cut])
            rest, _ = outputs(trial.model, source[:, cut:], **{self.state: state})
            problem = f"inputs in pieces ({cut} and {length - cut}) have other outputs than whole"
            require_same_rows(torch.cat([first, rest], 1), whole, trial.tolerance, problem)

    def _why_no_pieces(self) -> str:
        if not self.state:
            return f"forward takes no state (an argument {', '.join(STATES[:2])} ...)"
        if not self.returns_state:
            return f"forward takes {self.state}, and returns no state after its output"
        return "" if self.each_place else "there is not an output for each place"

    def _why_not_causal(self) -> str:
        if not self.each_place:
            return "there is not an output for each place"
        goes_on = self.state and self.returns_state
        return "" if goes_on or "causal" in self.expected else "not expected (--expect causal)"

    def _why_no_set(self) -> str:
        if not self.taken.has_places:
            return "the input has no places"
        return "" if "set" in self.expected else "not expected (--expect set)"


def _like(module: nn.Module, source: Tensor) -> Tensor:
    """Return inputs in the precision of a module."""
    if not source.is_floating_point():
        return source
    return source.to(next((weight.dtype for weight in module.parameters()), source.dtype))
