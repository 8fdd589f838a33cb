"""The laws of every mixer, block and stack, as functions: for rows of the table and for drawn stacks."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State, detach_state, map_state, reset_rows, select_rows
from foveal.ops.jit.dispatch import record_paths, reference_only
from tests.support.mixer_rows import run_module, state_entries

B, T = 3, 11


@dataclass(frozen=True)
class Trial:
    """A module under test, and the laws that it promises."""

    module: nn.Module
    width: int
    """Width of the inputs."""
    dtype: torch.dtype
    tolerance: float
    standing_nan: bool = True
    exact: bool = True
    memory: Memory | None = None
    """The memory, if the module reads one: rows for any batch of a law, in order."""

    def inputs(self, *shape: int) -> Tensor:
        return torch.randn(*(shape or (B, T)), self.width, dtype=self.dtype)

    def begin(self, *rows: int, capacity: int | None = None) -> State:
        """Return the initial state of these rows, or by default of the first B rows."""
        chosen = list(rows) or slice(B)
        memory = None
        if self.memory is not None:
            vectors, mask, summary = (part[chosen] for part in self.parts())
            memory = Memory(vectors, mask, summary)
        module: Any = self.module
        return module.init_state(len(rows) or B, capacity, memory)

    def start(self, *rows: int) -> State:
        """Return the initial state, or None if no memory is read."""
        return None if self.memory is None else self.begin(*rows)

    def parts(self) -> list[Tensor]:
        """Return the rows of the memory."""
        memory = self.memory
        return [] if memory is None else [memory.vectors, memory.mask, memory.summary]

    def gradients(self, outputs: list[Tensor], *inputs: Tensor) -> list[Tensor]:
        """Return `gradients`, including those of the memory."""
        return gradients(self.module, outputs, *inputs, *self.parts()[::2])

    def close(self, a: Tensor, b: Tensor, slack: float = 1.0) -> None:
        """Check that two tensors are equal up to rounding, relative to the largest number."""
        size = float(b.detach().abs().max()) if b.numel() else 0.0
        tolerance = slack * self.tolerance
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(1.0, size))

    def same(self, state: object, other: object) -> None:
        """Check that two states are equivalent."""
        for a, b in zip(state_entries(self.module, state), state_entries(self.module, other), strict=True):
            self.close(a, b)


@contextmanager
def on_path(reference: bool) -> Iterator[list[str]]:
    """Return a context with only the reference, or with the default paths. The list gains each
    path that ran."""
    with record_paths() as ran, reference_only() if reference else nullcontext():
        yield ran
    assert all(step.endswith(":reference") for step in ran) or not reference


def gradients(module: nn.Module, outputs: list[Tensor], *inputs: Tensor) -> list[Tensor]:
    """Return the gradient of a fixed random functional of `outputs` to every parameter and input."""
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=outputs[0].dtype)
    for output in outputs:
        if output.is_floating_point() and output.requires_grad:
            weight = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
            loss = loss + (output * weight).sum()
    wanted = [*module.parameters(), *inputs]
    found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, found, strict=True)]


def chunks(trial: Trial, cuts: list[int]) -> None:
    """Check that a sequence split in any way has the same outputs, final state and gradients as the whole."""
    module, x = trial.module, trial.inputs().requires_grad_()
    whole, last = run_module(module, x, trial.start())
    state, parts = trial.start(), []
    for part in x.tensor_split(cuts, 1):
        y, state = run_module(module, part, state)
        parts.append(y)
    pieces = torch.cat(parts, 1)
    trial.close(pieces, whole)
    trial.same(state, last)
    for a, b in zip(
        trial.gradients([pieces, *state_entries(module, state)], x),
        trial.gradients([whole, *state_entries(module, last)], x),
        strict=True,
    ):
        trial.close(a, b, slack=10)


def start_state_is_no_state(trial: Trial) -> None:
    module, x = trial.module, trial.inputs()
    for start in (trial.begin(), trial.begin(capacity=2 * T)):
        y, state = run_module(module, x, start)
        want, last = run_module(module, x, trial.start())
        trial.close(y, want)
        trial.same(state, last)


def causality(trial: Trial, t: int) -> Tensor:
    """Check that inputs from t on change no earlier output, bit for bit, and that no gradient flows to the
    future.

    Return the gradient to the last input before t.
    """
    module, x = trial.module, trial.inputs().requires_grad_()
    y, _ = run_module(module, x, trial.start())
    (gradient,) = torch.autograd.grad(y[:, :t].square().sum(), x)
    assert gradient[:, t:].eq(0).all()
    changes = [1e3] + [float("nan")] * trial.standing_nan
    for value in changes:
        other = x.detach().clone()
        other[:, t:] = value
        found = run_module(module, other, trial.start())[0][:, :t]
        if trial.exact:
            assert torch.equal(found, y[:, :t])
        else:
            trial.close(found, y[:, :t])
    return gradient[:, t - 1]


def padding_and_batch(trial: Trial) -> None:
    """Check that NaN in the padding changes nothing, padding gives zeros, and a row alone equals the row in
    the batch."""
    module: Any
    module, lengths = trial.module, torch.tensor([T, 4, 0])
    before, after = trial.inputs(2, B, T)
    _, later = run_module(module, before, trial.start(), torch.tensor([2, T, 5]))
    for state in (trial.start(), detach_state(later)):
        padded = after.clone()
        for b, n in enumerate(lengths):
            padded[b, n:] = torch.nan
        clean, other = after.clone().requires_grad_(), padded.requires_grad_()
        y, last = run_module(module, clean, state, lengths)
        z, end = run_module(module, other, state, lengths)
        assert torch.equal(y, z)
        assert all(y[b, n:].eq(0).all() for b, n in enumerate(lengths))
        a = trial.gradients([y, *state_entries(module, last)], clean)
        c = trial.gradients([z, *state_entries(module, end)], other)
        assert all(torch.equal(g, h) and g.isfinite().all() for g, h in zip(a, c, strict=True))
        for b, n in enumerate(lengths.tolist()):
            row = torch.tensor([b])
            alone = None if state is None else select_rows(state, row)
            if n:
                own, own_last = run_module(module, after[b : b + 1, :n], alone)
                trial.close(own[0], y[b, :n].detach())
            else:
                own_last = module.init_state(1) if alone is None else alone
            trial.same(own_last, select_rows(end, row))


def select_and_reset(trial: Trial) -> None:
    """Check that selected rows continue the same, reset rows continue as from the start, and storage is
    fresh."""
    module = trial.module
    x, more = trial.inputs(2, B, T)
    with torch.no_grad():
        _, state = run_module(module, x, trial.start(), torch.tensor([T, 3, 7]))
        rows = torch.tensor([2, 0, 2, 1])
        chosen = select_rows(state, rows)
        again = torch.tensor([False, True, False])
        renewed = reset_rows(state, again, trial.begin())
        kept = map_state(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, state)
        expect, _ = run_module(module, more, select_rows(state, torch.arange(B)))
        got, _ = run_module(module, more[rows], chosen)
        trial.close(got, expect[rows])
        first, _ = run_module(module, more, trial.start())
        got, _ = run_module(module, more, renewed)
        trial.close(got, torch.where(again[:, None, None], first, expect))
        for a, b in zip(state_entries(module, state), state_entries(module, kept), strict=True):
            assert torch.equal(a, b)


def storage(trial: Trial) -> None:
    """Check that the initial state is fresh storage, and that with gradients a passed state can be used
    twice."""
    module, x = trial.module, trial.inputs()
    given = [*module.parameters(), *trial.parts()]
    untouched = [part.detach().clone() for part in given]
    start = trial.begin()
    with torch.no_grad():
        map_state(lambda leaf: leaf.fill_(7) if isinstance(leaf, Tensor) else leaf, start)
    _, state = run_module(module, x[:, :4], trial.begin(capacity=2 * T))
    kept = [entry.clone() for entry in state_entries(module, state)]
    first, _ = run_module(module, x[:, 4:], state)
    again, _ = run_module(module, x[:, 4:], state)
    assert torch.equal(first, again)
    assert all(map(torch.equal, state_entries(module, state), kept))
    assert all(gradient.isfinite().all() for gradient in trial.gradients([first, again]))
    torch.testing.assert_close(given, untouched, rtol=0, atol=0, equal_nan=True)


@torch.no_grad()
def one_by_one(trial: Trial) -> None:
    """Check generation: a ragged prompt, then one position at a time without gradients, equals each whole
    row."""
    module, lengths = trial.module, torch.tensor([5, 2, 0])
    prompt, more = trial.inputs(B, 5), trial.inputs(B, T - 5)
    for capacity in (None, 3, T):
        _, state = run_module(module, prompt, trial.begin(capacity=capacity), lengths)
        outputs = []
        for x in more.split(1, 1):
            y, state = run_module(module, x, state)
            outputs.append(y)
        for b, n in enumerate(lengths):
            whole, last = run_module(module, torch.cat([prompt[b, :n], more[b]])[None], trial.start(b))
            trial.close(torch.cat(outputs, 1)[b], whole[0, n:])
            trial.same(select_rows(state, torch.tensor([b])), last)


def every_parameter_learns(trial: Trial) -> None:
    """Check that every parameter's gradient from the initial state exists and is finite."""
    module = trial.module
    module.zero_grad()
    y, state = run_module(module, trial.inputs(), trial.start())
    drawn = state["drawn"].sum() if isinstance(state, dict) and "drawn" in state else 0.0  # by REINFORCE
    (y.square().sum() + drawn).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def any_lengths(trial: Trial, lengths: list[list[int]]) -> None:
    """Check that each row, in chunks of any lengths, equals the whole row. `lengths` has a list for each
    chunk."""
    module, rows = trial.module, len(lengths[0])
    texts = [trial.inputs(sum(chunk[b] for chunk in lengths)) for b in range(rows)]
    state, seen = trial.start(*range(rows)), [0] * rows
    outputs: list[list[Tensor]] = [[] for _ in range(rows)]
    for chunk in lengths:
        x = torch.full((rows, max(max(chunk), 1), trial.width), torch.nan, dtype=trial.dtype)
        for b, n in enumerate(chunk):
            x[b, :n] = texts[b][seen[b] : seen[b] + n]
        y, state = run_module(module, x, state, torch.tensor(chunk))
        for b, n in enumerate(chunk):
            outputs[b].append(y[b, :n])
            seen[b] += n
    for b, text in enumerate(texts):
        if len(text):
            whole, last = run_module(module, text[None], trial.start(b))
            trial.close(torch.cat(outputs[b]), whole[0])
            trial.same(select_rows(state, torch.tensor([b])), last)


def lengths_of_chunks(most: int = 5) -> st.SearchStrategy[list[list[int]]]:
    """Draw the lengths of 1 to 4 rows, for each of 1 to 4 chunks."""
    row = st.integers(0, most)
    return st.integers(1, 4).flatmap(
        lambda rows: st.lists(st.lists(row, min_size=rows, max_size=rows), min_size=1, max_size=4)
    )
