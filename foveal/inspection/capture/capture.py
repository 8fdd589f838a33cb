"""`foveal.capture`: record the values of a model whose names match patterns, while the block is open."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.tap import StepStates, listen
from foveal.core.torch_private import may_be_compiled
from foveal.inspection.capture.modules import published_paths, watch_modules
from foveal.inspection.capture.record import Gradient, Record
from foveal.inspection.capture.sizes import MAX_NAMES, over_budget, parse_size
from foveal.ops.attention.attention_map import AttentionMap

GRADIENT = "grad:"
"""Prefix of the names of gradients."""

ATTENTION_HINT = (
    "; attention of other libraries is visible where it calls torch's scaled_dot_product_attention or "
    "softmax (Hugging Face: attn_implementation='sdpa' or 'eager')"
)


class Capture(Mapping[str, Record]):
    """The values that were captured, by name, in the order in which the model computed them."""

    def __init__(self, model: nn.Module, patterns: tuple[str, ...], budget: int, dry_run: bool):
        self._paths = published_paths(model)
        self._patterns = patterns
        self._budget, self._dry_run = budget, dry_run
        self._records = dict[str, Record]()
        self._sizes = dict[str, int]()
        self._offered = dict[str, None]()  # a set in the order of the computation
        self._without_gradient = dict[str, None]()

    def names(self) -> list[str]:
        """Return the names that match the patterns, also those of a dry run."""
        return list(self._sizes)

    def sizes(self) -> dict[str, int]:
        """Return the bytes that each name takes, also in a dry run. Of attention they are those of queries
        and keys."""
        return dict(self._sizes)

    def __getitem__(self, name: str) -> Record:
        self._check_kept()
        if self._dry_run:
            raise UserError("a dry run keeps nothing: see names() and sizes()")
        if name not in self._records:
            raise UserError(f"{name!r} was not captured: {_near(name, self._records)}")
        return self._records[name]

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def wants(self, module: nn.Module, site: str) -> bool:
        """Return whether the name of a value matches a pattern. Every name is noted as offered."""
        path = self._paths.get(module)
        if path is None:
            return False
        name = f"{path}/{site}"
        self._offered[name] = None
        if site != "weights":
            self._offered[GRADIENT + name] = None
        return self._matches(name) or self._matches(GRADIENT + name)

    def receive(self, module: nn.Module, site: str, value: Tensor | StepStates | AttentionMap) -> None:
        """Keep a copy of a value, or wait for its gradient."""
        name = f"{self._paths[module]}/{site}"
        if self._matches(name):
            kept = value.stacked() if isinstance(value, StepStates) else value
            if self._has_room(name, kept.nbytes):
                # A copy, because layers go on to write into caches and activations.
                copy = kept.copy() if isinstance(kept, AttentionMap) else kept.detach().clone()
                self._record(name).kept.append(copy)
        if not isinstance(value, AttentionMap) and self._matches(GRADIENT + name):
            self._await_gradient(GRADIENT + name, value)

    def finish(self) -> None:
        """Check that every pattern has matched a name, and that the values are inside the budget.

        Raises: UserError: a pattern matches nothing, a gradient was wanted of a value without a graph, or the
        values are larger than the budget.
        """
        if not self._offered:
            raise UserError("nothing was captured: call the model inside the block")
        for pattern in self._patterns:
            if not any(_fits(name, pattern) for name in self._offered):
                raise UserError(f"{pattern!r} matches no value: {_near(pattern, self._offered)}")
        if self._without_gradient:
            name = next(iter(self._without_gradient))
            raise UserError(f"{name}: the model ran without gradients: no torch.no_grad or inference_mode")
        self._check_kept()

    def _matches(self, name: str) -> bool:
        return any(_fits(name, pattern) for pattern in self._patterns)

    def _has_room(self, name: str, size: int) -> bool:
        """Count a value, and return whether it is to be kept. Beyond the budget nothing is kept, but all is
        counted."""
        self._sizes[name] = self._sizes.get(name, 0) + size
        if self._dry_run or sum(self._sizes.values()) > self._budget:
            self._records.clear()
            return False
        return True

    def _record(self, name: str) -> Record:
        return self._records.setdefault(name, Record(name, self._budget))

    def _await_gradient(self, name: str, value: Tensor | StepStates) -> None:
        steps = [value] if isinstance(value, Tensor) else value.steps
        if not any(step.requires_grad for step in steps):
            self._without_gradient[name] = None
        elif self._has_room(name, sum(step.nbytes for step in steps)):
            self._record(name).kept.append(Gradient(value))

    def _check_kept(self) -> None:
        if not self._dry_run and sum(self._sizes.values()) > self._budget:
            raise over_budget(self._sizes, self._budget)


@contextmanager
def capture(
    model: nn.Module, *patterns: str, budget: str | int = "1GB", dry_run: bool = False
) -> Iterator[Capture]:
    """Record the inner values of `model` whose names match one of `patterns`; without patterns, all.

    A name is `<module path>/<site>`, such as `stack.blocks.0.mixer/weights`, and a pattern is a shell
    pattern of names. `grad:<name>` is the gradient of a loss for the value, after `backward`. Compiled
    modules run eagerly inside the block. With `dry_run` nothing is kept: `names()` and `sizes()` say what
    would be.

    Example:

        >>> model = foveal.create_model("attention", vocabulary=20, settings={"model.width": 32})
        >>> with torch.inference_mode(), foveal.capture(model, "*.0.mixer/weights") as record:
        ...     _ = model(torch.randint(20, (1, 8)))
        >>> record.names()
        ['head.stack.blocks.0.mixer/weights']
        >>> record["head.stack.blocks.0.mixer/weights"].weights(heads=0, rows=slice(4)).shape
        torch.Size([1, 1, 4, 8])

    Raises: UserError: a pattern matches nothing, or the values are larger than the budget. Both are raised at
    the end of the block.
    """
    captured = Capture(model, patterns or ("*",), parse_size(budget), dry_run)
    with ExitStack() as stack:
        if may_be_compiled():
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(watch_modules(model, captured))
        stack.enter_context(listen(captured))
        yield captured
    captured.finish()


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern. Gradients have the prefix in both."""
    return name.startswith(GRADIENT) == pattern.startswith(GRADIENT) and fnmatchcase(name, pattern)


def _near(name: str, offered: Iterable[str]) -> str:
    """Return what is offered near a name: near names, names of a near site, or the sites and a few names."""
    names = [other for other in offered if other.startswith(GRADIENT) == name.startswith(GRADIENT)]
    sites = list(dict.fromkeys(other.rpartition("/")[2] for other in names))
    near = get_close_matches(name, names, MAX_NAMES // 2)
    if not near:
        close_sites = get_close_matches(name.rpartition("/")[2], sites, 1)
        near = [other for other in names if other.rpartition("/")[2] in close_sites][: MAX_NAMES // 2]
    if near:
        return f"near it are {', '.join(near)}"
    where = "" if "weights" in sites or not name.endswith("weights") else ATTENTION_HINT
    listed = ", ".join(f"*/{site}" for site in sites)
    return f"the model offers {listed}, such as {names[-1]}{where}"
