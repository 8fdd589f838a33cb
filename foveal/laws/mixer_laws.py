"""The laws of every mixer, block and stack, as functions. Inputs are drawn from torch's global generator."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from foveal.core.memory import Memory
from foveal.core.state import detach_state, map_state, reset_rows, select_rows
from foveal.laws.law import LawBroken, require, require_equal, require_gradients, require_nothing_kept
from foveal.laws.module_states import run_module, state_entries
from foveal.laws.trial import B, T, Trial


def keeps_nothing(trial: Trial) -> None:
    """Check that the module keeps nothing between two calls: the same input gives the same output again.

    Raises: LawBroken: it does not.
    """
    module, x, other = trial.module, trial.inputs(), trial.inputs()
    _, state = run_module(module, x, trial.start())
    kept = [entry.clone() for entry in state_entries(module, state)]
    require_nothing_kept(
        module,
        lambda: [run_module(module, x, trial.start())[0]],
        lambda: run_module(module, other, trial.start()),
    )
    for entry, before in zip(state_entries(module, state), kept, strict=True):
        require_equal(entry, before, "a later call changes a state that was returned before")


def chunks(trial: Trial, cuts: Iterable[int]) -> None:
    """Check that a sequence split in any way has the same outputs, final state and gradients as the whole.

    Raises: LawBroken: it has not.
    """
    module, x = trial.module, trial.inputs().requires_grad_()
    whole, last = run_module(module, x, trial.start())
    state, parts = trial.start(), []
    for part in x.tensor_split([*cuts], 1):
        y, state = run_module(module, part, state)
        parts.append(y)
    pieces = torch.cat(parts, 1)
    trial.close(pieces, whole, "a sequence in pieces has other outputs than the whole")
    trial.same(state, last, "a sequence in pieces ends in another state than the whole")
    for a, b in zip(
        trial.gradients([pieces, *state_entries(module, state)], x),
        trial.gradients([whole, *state_entries(module, last)], x),
        strict=True,
    ):
        trial.close(a, b, "a sequence in pieces has other gradients than the whole", slack=10.0)


def start_state_is_no_state(trial: Trial) -> None:
    """Check that `init_state` is the state that a call without a state begins from.

    Raises: LawBroken: it is not.
    """
    module, x = trial.module, trial.inputs()
    for start in (trial.begin(), trial.begin(capacity=2 * T)):
        y, state = run_module(module, x, start)
        want, last = run_module(module, x, trial.start())
        trial.close(y, want, "init_state begins elsewhere than a call without a state")
        trial.same(state, last, "from init_state another state is reached than without a state")


def causality(trial: Trial, t: int) -> Tensor:
    """Check that inputs from t on change no earlier output, bit for bit, and that no gradient flows to the
    future.

    Return the gradient to the last input before t.

    Raises: LawBroken: an earlier output sees the future.
    """
    module, x = trial.module, trial.inputs().requires_grad_()
    y, _ = run_module(module, x, trial.start())
    (gradient,) = torch.autograd.grad(y[:, :t].square().sum(), x)
    problem = "an output depends on later inputs"
    if not gradient[:, t:].eq(0).all():
        raise LawBroken(f"{problem}: a gradient flows to them", float(gradient[:, t:].abs().max()))
    changes = [1e3] + [float("nan")] * trial.standing_nan
    for value in changes:
        other = x.detach().clone()
        other[:, t:] = value
        changed = run_module(module, other, trial.start())[0][:, :t]
        if trial.exact:
            require_equal(changed, y[:, :t], problem)
        else:
            trial.close(changed, y[:, :t], problem)
    return gradient[:, t - 1]


def padding_and_batch(trial: Trial) -> None:
    """Check that NaN in the padding changes nothing, padding gives zeros, and a row alone equals the row in
    the batch.

    Raises: LawBroken: padding leaks, or rows see each other.
    """
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
        require_equal(y, z, "what stands in the padding changes outputs: padding leaks")
        require(
            all(y[b, n:].eq(0).all() for b, n in enumerate(lengths)), "outputs in the padding are not zero"
        )
        a = trial.gradients([y, *state_entries(module, last)], clean)
        c = trial.gradients([z, *state_entries(module, end)], other)
        for g, h in zip(a, c, strict=True):
            require_equal(g, h, "what stands in the padding changes gradients: padding leaks")
            require(g.isfinite().all(), "a gradient of a padded batch is not finite")
        for b, n in enumerate(lengths.tolist()):
            row = torch.tensor([b])
            alone = None if state is None else select_rows(state, row)
            if n:
                own, own_last = run_module(module, after[b : b + 1, :n], alone)
                trial.close(own[0], y[b, :n].detach(), "a row alone has other outputs than in a batch")
            else:
                own_last = module.init_state(1) if alone is None else alone
            trial.same(own_last, select_rows(end, row), "a row alone ends in another state than in a batch")


def order_of_memory(trial: Trial) -> None:
    """Check that the order of the positions of the memory changes nothing.

    Raises: LawBroken: it changes outputs.
    """
    assert trial.memory is not None
    vectors, mask, summary = trial.parts()
    order = torch.arange(mask.shape[1] - 1, -1, -1)
    other = replace(trial, memory=Memory(vectors[:, order], mask[:, order], summary))
    x = trial.inputs()
    y, permuted = (run_module(each.module, x, each.start())[0] for each in (trial, other))
    trial.close(permuted, y, "the order of the memory changes outputs")


def order_of_places(trial: Trial) -> None:
    """Check that permuted inputs have permuted outputs, f(x_p)_t = f(x)_p(t).

    Raises: LawBroken: they have others.
    """
    x, order = trial.inputs(), torch.arange(T - 1, -1, -1)
    y, permuted = (run_module(trial.module, each, None)[0] for each in (x, x[:, order]))
    trial.close(permuted, y[:, order], "permuted inputs have other outputs: the order of places is known")


def select_and_reset(trial: Trial) -> None:
    """Check that selected rows continue the same, reset rows continue as from the start, and storage is
    fresh.

    Raises: LawBroken: they do not.
    """
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
        trial.close(got, expect[rows], "rows that are selected from a state continue otherwise")
        first, _ = run_module(module, more, trial.start())
        got, _ = run_module(module, more, renewed)
        reset = torch.where(again[:, None, None], first, expect)
        trial.close(got, reset, "a row that is reset does not begin anew, or another row does")
        for a, b in zip(state_entries(module, state), state_entries(module, kept), strict=True):
            require_equal(a, b, "a state that was selected from is changed by a later call")


def storage(trial: Trial) -> None:
    """Check that the initial state is fresh storage, and that with gradients a passed state can be used
    twice.

    Raises: LawBroken: it is not, or a call writes into the state or the parameters.
    """
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
    require_equal(again, first, "a state that is passed twice continues otherwise the second time")
    for entry, before in zip(state_entries(module, state), kept, strict=True):
        require_equal(entry, before, "a call with gradients writes into the state that is passed")
    each = trial.gradients([first, again])
    require(all(gradient.isfinite().all() for gradient in each), "a gradient is not finite")
    for part, before in zip(given, untouched, strict=True):
        same = torch.equal(part.nan_to_num(), before.nan_to_num())
        require(
            same, "init_state shares its storage with a parameter or the memory, or a call writes into one"
        )


@torch.no_grad()
def one_by_one(trial: Trial) -> None:
    """Check generation: a ragged prompt, then one position at a time without gradients, equals each whole
    row.

    Raises: LawBroken: it does not.
    """
    module, lengths = trial.module, torch.tensor([5, 2, 0])
    prompt, more = trial.inputs(B, 5), trial.inputs(B, T - 5)
    for capacity in (None, 3, T):
        _, state = run_module(module, prompt, trial.begin(capacity=capacity), lengths)
        outputs = []
        for x in torch.split(more, 1, 1):
            y, state = run_module(module, x, state)
            outputs.append(y)
        for b, n in enumerate(lengths):
            whole, last = run_module(module, torch.cat([prompt[b, :n], more[b]])[None], trial.start(b))
            step_by_step = torch.cat(outputs, 1)[b]
            trial.close(
                step_by_step, whole[0, n:], "generation step by step has other outputs than the whole"
            )
            end = select_rows(state, torch.tensor([b]))
            trial.same(end, last, "generation step by step ends in another state than the whole")


def every_parameter_learns(trial: Trial) -> None:
    """Check that every parameter's gradient from the initial state exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    module = trial.module
    y, state = run_module(module, trial.inputs(), trial.start())
    drawn = state["drawn"].sum() if isinstance(state, dict) and "drawn" in state else 0.0  # by REINFORCE
    require_gradients(module, y.square().sum() + drawn)


def any_lengths(trial: Trial, lengths: list[list[int]]) -> None:
    """Check that each row, in chunks of any lengths, equals the whole row. `lengths` has a list for each
    chunk.

    Raises: LawBroken: it does not.
    """
    module, rows = trial.module, len(lengths[0])
    texts = [trial.inputs(sum(chunk[b] for chunk in lengths)) for b in range(rows)]
    state, done = trial.start(*range(rows)), [0] * rows
    outputs: list[list[Tensor]] = [[] for _ in range(rows)]
    for chunk in lengths:
        x = torch.full((rows, max(max(chunk), 1), trial.width), torch.nan, dtype=trial.dtype)
        for b, n in enumerate(chunk):
            x[b, :n] = texts[b][done[b] : done[b] + n]
        y, state = run_module(module, x, state, torch.tensor(chunk))
        for b, n in enumerate(chunk):
            outputs[b].append(y[b, :n])
            done[b] += n
    for b, text in enumerate(texts):
        if len(text):
            whole, last = run_module(module, text[None], trial.start(b))
            problem = "a row in pieces of different lengths"
            trial.close(torch.cat(outputs[b]), whole[0], f"{problem} has other outputs than the whole")
            end = select_rows(state, torch.tensor([b]))
            trial.same(end, last, f"{problem} ends in another state than the whole")
