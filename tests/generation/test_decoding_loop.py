"""The step loop: a text is the same alone and in company, read whole or in chunks, by any mixer."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from foveal.core.errors import RunFailed, UserError
from foveal.core.memory import Memory
from foveal.generation.decoding_loop import (
    MIN_SHARED_PREFIX,
    GeneratedToken,
    generate,
    log_probabilities,
    prefill,
    shared_prefix,
)
from foveal.generation.sampling import GREEDY, Noise, Sampling, choose_tokens
from tests.support.decoder_heads import (
    HEADS,
    RecordingHead,
    ScriptedHead,
    SmallRecurrence,
    V,
    next_log_probabilities,
)

LENGTHS = [3, 1, 17, 8, 8, 2]
PROMPTS = [[(5 * i + 3 * length) % V for i in range(length)] for length in LENGTHS]
TEXTS = [f"prompt {i}" for i in range(len(PROMPTS))]
WAYS = {
    "greedy": GREEDY,
    "sampling": Sampling(temperature=1.2, top_k=6, top_p=0.98, seed=3),
    "penalty": Sampling(temperature=0.7, repetition_penalty=1.5),
}

head_of_any_kind = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS.keys())
in_any_way = pytest.mark.parametrize("sampling", WAYS.values(), ids=WAYS.keys())


def rows(written: list[GeneratedToken]) -> dict[int, list[tuple[int, str | None]]]:
    """Of each row, its tokens and reasons."""
    texts: dict[int, list[tuple[int, str | None]]] = {}
    for row, token, _, reason in written:
        texts.setdefault(row, []).append((token, reason))
    return texts


def by_rereading(
    head: Any,
    prompt: list[int],
    text: str,
    sample: int,
    max_new_tokens: int,
    sampling: Sampling,
    end_tokens: set[int],
) -> tuple[list[tuple[int, str | None]], list[float]]:
    """One text, the slow way: the whole of it is read again for each token."""
    tokens, told, chances = list(prompt), [], []
    for step in range(max_new_tokens):
        logits = next_log_probabilities(head, tokens)[None]
        seen = torch.zeros(1, V, dtype=torch.bool)
        seen[0, tokens] = sampling.repetition_penalty != 1
        # The penalty depends on a logit's sign, so it needs the logits themselves.
        with torch.no_grad():
            features, _, _ = head(torch.tensor([tokens]), head.init_state(None, 1))
            raw = head.project(features[:, -1])
        token = int(choose_tokens(raw, sampling, seen, [Noise(sampling.seed, text, sample)(step)]))
        reason = "end" if token in end_tokens else "limit" if step + 1 == max_new_tokens else None
        tokens.append(token)
        told.append((token, reason))
        chances.append(logits[0, token].item())
        if token in end_tokens:
            break
    return told, chances


@head_of_any_kind
@in_any_way
def test_a_text_in_a_batch_is_the_text_alone(make: Callable[[], nn.Module], sampling: Sampling) -> None:
    """Prompts of different lengths, read in chunks, ends at different steps, against rereading one by one."""
    head: Any
    head, end, limit, samples = make(), {2, 5}, 12, 2
    batch = list(generate(head, PROMPTS, TEXTS, limit, sampling, samples=samples, end_tokens=end, chunk=5))
    found = rows(batch)
    lengths = {len(text) for text in found.values()}
    assert len(found) == samples * len(PROMPTS)
    for row, told in found.items():
        prompt = row // samples
        slow, chances = by_rereading(
            head, PROMPTS[prompt], TEXTS[prompt], row % samples, limit, sampling, end
        )
        assert told == slow
        mine = [written.log_probability for written in batch if written.row == row]
        assert mine == pytest.approx(chances, abs=1e-10)
    if sampling is WAYS["sampling"]:
        assert len(lengths) > 1, "no row ended before another: nothing was dropped"


@head_of_any_kind
@pytest.mark.parametrize("chunk", [1, 3, 8, 17])
def test_prefill_in_chunks_is_prefill(make: Callable[[], nn.Module], chunk: int) -> None:
    head: Any = make()
    with torch.inference_mode():
        whole, whole_state = prefill(head, PROMPTS, None, 100)
        parts, parts_state = prefill(head, PROMPTS, None, chunk)
        next_tokens = torch.arange(len(PROMPTS))[:, None] % V
        after_whole, _, _ = head(next_tokens, whole_state)
        after_parts, _, _ = head(next_tokens, parts_state)
    assert parts.sub(whole).abs().max() < 1e-10
    assert after_parts.sub(after_whole).abs().max() < 1e-10


@head_of_any_kind
@pytest.mark.parametrize("chunk", [7, 100])
def test_a_shared_prefix_is_read_once(make: Callable[[], nn.Module], chunk: int) -> None:
    """Features, state and texts are those of prompts that are read alone."""
    prefix = [(3 * i) % V for i in range(MIN_SHARED_PREFIX + 4)]
    prompts = [prefix + prompt for prompt in ([0], [1, 2, 3, 4], [5], [2, 6])]
    head: Any = make()
    recording = RecordingHead(head)
    next_tokens = torch.arange(len(prompts))[:, None] % V
    with torch.inference_mode():
        features, state = prefill(recording, prompts, None, chunk, 4)
        after, _, _ = head(next_tokens, state)
        for row, prompt in enumerate(prompts):
            alone, state_alone = prefill(head, [prompt], None, 100, 4)
            assert features[row].sub(alone[0]).abs().max() < 1e-10
            after_alone, _, _ = head(next_tokens[row : row + 1], state_alone)
            assert after[row].sub(after_alone[0]).abs().max() < 1e-10
    read = sum(rows * length for (rows, length), _ in recording.calls)
    assert read <= len(prefix) + len(prompts) * 4
    texts = [f"prompt {i}" for i in range(len(prompts))]
    together = rows(list(generate(head, prompts, texts, 6, Sampling(seed=2), chunk=chunk)))
    for row, prompt in enumerate(prompts):
        (alone_text,) = rows(list(generate(head, [prompt], [texts[row]], 6, Sampling(seed=2)))).values()
        assert together[row] == alone_text


@pytest.mark.parametrize(
    ("prompts", "shared"),
    [
        ([[1] * 40, [1] * 40], 39),
        ([[1] * 20 + [2, 3], [1] * 20 + [4]], 20),
        ([[1] * 20, [1] * 25], 19),
        ([[1] * 8, [1] * 8], 0),
        ([[1] * 40], 0),
        ([[2] + [1] * 40, [1] * 41], 0),
    ],
)
def test_how_much_is_shared(prompts: list[list[int]], shared: int) -> None:
    tokens = pad_sequence([torch.tensor(prompt) for prompt in prompts], batch_first=True)
    assert shared_prefix(tokens, min(map(len, prompts))) == shared


def test_texts_depend_on_seed_prompt_and_sample_alone() -> None:
    head, sampling = SmallRecurrence(), Sampling(seed=1)
    texts = rows(list(generate(head, PROMPTS, TEXTS, 30, sampling, samples=3)))
    backwards = rows(list(generate(head, PROMPTS[::-1], TEXTS[::-1], 30, sampling, samples=3)))
    for prompt in range(len(PROMPTS)):
        for sample in range(3):
            assert texts[3 * prompt + sample] == backwards[3 * (len(PROMPTS) - 1 - prompt) + sample]
    assert len({str(text) for text in texts.values()}) == len(texts), "samples differ"
    other = rows(list(generate(head, PROMPTS, TEXTS, 30, Sampling(seed=2), samples=3)))
    assert all(other[row] != texts[row] for row in texts)
    fewer = rows(list(generate(head, PROMPTS, TEXTS, 30, sampling, samples=1)))
    assert [fewer[i] for i in range(len(PROMPTS))] == [texts[3 * i] for i in range(len(PROMPTS))]
    longer = rows(list(generate(head, PROMPTS, TEXTS, 40, sampling)))
    assert all(longer[i][:29] == fewer[i][:29] for i in range(len(PROMPTS)))


def test_finished_rows_are_no_longer_computed() -> None:
    """Every row ends at its own step, said by the caller."""
    head = RecordingHead(SmallRecurrence())
    ends, drawn = [4, 2, 9, 2, 6, 7], [0] * len(PROMPTS)

    def stop(row: int, token: int) -> bool:
        drawn[row] += 1
        return drawn[row] == ends[row]

    written = list(generate(head, PROMPTS, TEXTS, 20, Sampling(), stop=stop))
    assert drawn == ends
    assert [text[-1][1] for _, text in sorted(rows(written).items())] == ["stop"] * len(PROMPTS)
    widths = [shape[0] for shape, _ in head.calls[1:]]
    assert widths == [sum(end > step for end in ends) for step in range(1, 9)]
    alone = rows(list(generate(head, PROMPTS[2:3], TEXTS[2:3], 9, Sampling())))[0]
    assert [token for token, _ in rows(written)[2]] == [token for token, _ in alone]


def test_a_token_costs_the_same_however_long_the_text() -> None:
    head = RecordingHead(SmallRecurrence())
    list(generate(head, PROMPTS[:2], TEXTS[:2], 200, Sampling(repetition_penalty=1.2), samples=2))
    prefills, steps = head.calls[:1], head.calls[1:]
    assert prefills == [((2, 3), 16)]
    assert steps == [((4, 1), 32)] * 199


def test_tokens_are_yielded_as_they_come() -> None:
    head = RecordingHead(SmallRecurrence())
    writing = generate(head, PROMPTS[:2], TEXTS[:2], 5, Sampling(), chunk=2)
    assert head.calls == []
    next(writing)
    next(writing)
    assert len(head.calls) == 2, "two chunks of the prompt, no step yet"
    next(writing)
    assert len(head.calls) == 3


def test_repetition_penalty_sees_each_rows_own_past() -> None:
    """Token 0, which pads the shorter prompt, was not said there; prompts and texts count, rows don't mix."""
    head = ScriptedHead(torch.tensor([[3.0, 2.0, 1.0, 0.1]]))
    penalty = Sampling(temperature=0.0, repetition_penalty=4.0)
    found = rows(list(generate(head, [[1], [0, 0, 3]], ["", ""], 4, penalty)))
    # Row 0: 3 2/4 1 -> 0; 3/4 2/4 1 -> 2; 3/4 2/4 1/4 -> 0 again. Row 1: 3/4 2 1 -> 1; then 2; then 0.
    assert [token for token, _ in found[0]] == [0, 2, 0, 0]
    assert [token for token, _ in found[1]] == [1, 2, 0, 0]


def test_a_memory_goes_with_its_prompt() -> None:
    head = SmallRecurrence()
    summary = torch.randn(2, 8, dtype=torch.float64)

    def memory(*which: int) -> Memory:
        picked = summary[list(which)]
        return Memory(picked[:, None], torch.ones(len(which), 1, dtype=torch.bool), picked)

    both = rows(
        list(generate(head, [[1, 2], [1]], ["a", "b"], 9, Sampling(), samples=2, memory=memory(0, 1)))
    )
    for i, (prompt, text) in enumerate([([1, 2], "a"), ([1], "b")]):
        alone = rows(list(generate(head, [prompt], [text], 9, Sampling(), samples=2, memory=memory(i))))
        assert [both[2 * i], both[2 * i + 1]] == [alone[0], alone[1]]


def test_nothing_is_recorded_for_gradients() -> None:
    head = RecordingHead(SmallRecurrence())
    modes: list[bool] = []
    head.head.register_forward_pre_hook(lambda *_: modes.append(torch.is_inference_mode_enabled()))
    for _ in generate(head, PROMPTS, TEXTS, 3, GREEDY):
        assert not torch.is_inference_mode_enabled(), "the caller's own mode is untouched between tokens"
    assert modes == [True] * 3


def test_what_can_be_mended() -> None:
    head = HEADS["attention-learned"]()
    with pytest.raises(UserError, match="prompt 2 is empty"):
        list(generate(head, [[1], []], ["a", ""], 3, GREEDY))
    with pytest.raises(UserError, match="at least 1"):
        list(generate(head, [[1]], ["a"], 0, GREEDY))
    with pytest.raises(UserError, match="at least 1"):
        list(generate(head, [[1]], ["a"], 3, GREEDY, samples=0))
    assert len(list(generate(head, [[1]], ["a"], 64, GREEDY))) == 64
    with pytest.raises(UserError, match="64"):
        list(generate(head, [[1]], ["a"], 65, GREEDY))


@pytest.mark.parametrize("sampling", [GREEDY, Sampling()])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_broken_weights_are_said(sampling: Sampling, bad: float) -> None:
    with pytest.raises(RunFailed, match="not finite"):
        list(generate(ScriptedHead(torch.tensor([[0.0, bad, 0.0]])), [[1]], ["a"], 3, sampling))


def test_each_prompt_may_have_a_limit_of_its_own() -> None:
    """And writes what it would alone."""
    head, limits = SmallRecurrence(), [7, 2, 5, 3, 9, 4, 6, 8][: len(PROMPTS)]
    found = rows(list(generate(head, PROMPTS, TEXTS, limits, Sampling(seed=1), samples=2)))
    for at, (prompt, text, limit) in enumerate(zip(PROMPTS, TEXTS, limits, strict=True)):
        alone = rows(list(generate(head, [prompt], [text], limit, Sampling(seed=1), samples=2)))
        assert [found[2 * at], found[2 * at + 1]] == [alone[0], alone[1]]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
def test_log_probabilities(scale: float) -> None:
    logits, tokens = scale * torch.randn(4, 50_000), torch.randint(50_000, (4,))
    logits[3] = -torch.inf
    logits[3, 7] = 2.0
    tokens[3] = 7
    found = log_probabilities(logits, tokens)
    expected = logits.double().log_softmax(-1).gather(-1, tokens[:, None]).squeeze(-1)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)
