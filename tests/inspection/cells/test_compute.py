"""The search for units, on a network built by hand whose unit 7 is open between quotes."""

import numpy as np
import pytest
import torch

from foveal import layers
from foveal.core.progress import no_progress
from foveal.inspection.cells import held_out
from foveal.inspection.cells.ablation import held_unit, log_probability, log_probability_without
from foveal.inspection.cells.compute import correlate_halves, find_cells, token_labels, with_controls
from foveal.inspection.cells.held_out import TOKENS_BEFORE, read_held_out
from foveal.inspection.cells.probes import PROBES
from foveal.inspection.cells.searched_text import SHOWN_TOKENS, liveliest
from foveal.inspection.cells.view import CellsOptions, CellsView
from foveal.inspection.panels import ColoredText
from foveal.inspection.read_states import read_chunks
from tests.support.language_runs import LanguageRun, language_run, one_hot_model

LATCH, WIDTH, SURE = 7, 9, 1e4
LAYER = "stack.blocks.0.mixer/c"


def quoted_text(rows: int = 64) -> str:
    """Return text in which quotes are closed after each 64 letters, where rows of the search end."""
    rng = np.random.default_rng(0)
    letters = rng.choice([*"abcdefgh  "], (rows, 64))
    for row in letters:
        row[rng.choice(64, 2 * rng.integers(1, 5), replace=False)] = '"'
    return "".join(letters.flatten())


def latch_run(text: str) -> LanguageRun:
    """c_7 = 1 between quotes: a quote forgets the cell, and sets it to 1 if h_7 says that it was closed."""
    torch.manual_seed(0)
    run = language_run(text, model=one_hot_model(layers.LSTM(len(set(text)), WIDTH)))
    cell = run.model.stack.blocks[0].mixer.cell
    quote = int(run.processor.encode('"')[0])
    with torch.no_grad():
        for weight in (cell.weight_input, cell.weight_hidden):
            weight.view(4, WIDTH, -1)[:, LATCH] = 0
        bias = cell.bias.view(4, WIDTH)[:, LATCH]
        i, f, g, o = range(4)
        bias[i], bias[f], bias[g], bias[o] = -SURE / 2, SURE / 2, SURE, SURE
        cell.weight_input.view(4, WIDTH, -1)[[i, f], LATCH, quote] = torch.tensor([SURE, -SURE])
        cell.weight_hidden.view(4, WIDTH, -1)[i, LATCH, LATCH] = -2 * SURE
    return run


@pytest.fixture(scope="module")
def latch():
    return latch_run(quoted_text())


def test_the_latch_is_found(latch):
    payload = CellsView().compute(latch, CellsOptions(find="quotes"), print, no_progress)
    (cell,) = payload.values["cells"]
    assert (cell["layer"], cell["unit"]) == (LAYER, LATCH)
    assert cell["search_r"] == pytest.approx(1, abs=1e-9)
    assert cell["r"] == pytest.approx(1, abs=1e-9)
    assert cell["control"] < 0.15
    (text,) = payload.drawn()
    assert isinstance(text, ColoredText)
    shown = "".join(text.tokens)
    quotes = text.array.values[0] > 0.5
    inside = [letter for letter, is_open in zip(shown, quotes, strict=True) if is_open]
    assert inside.count('"') == sum(quotes[1:] > quotes[:-1]) + quotes[0], "the opening ones"
    assert text.array.values[0].max() == pytest.approx(np.tanh(1), abs=1e-6), "tanh(c), not c"


def test_the_search_among_all_probes(latch):
    payload = CellsView().compute(latch, CellsOptions(), print, no_progress)
    (quotes,) = [cell for cell in payload.values["cells"] if cell["probe"] == "quotes"]
    assert (quotes["layer"], quotes["unit"]) == (LAYER, LATCH)
    assert payload.facts[0][0] == "quotes", "the largest |r| is shown first"
    assert "indentation" not in {cell["probe"] for cell in payload.values["cells"]}, "the text has no lines"


def test_what_a_unit_follows(latch):
    payload = CellsView().compute(latch, CellsOptions(unit=LATCH, layer=LAYER), print, no_progress)
    assert payload.values["cells"][0]["probe"] == "quotes"
    assert {cell["unit"] for cell in payload.values["cells"]} == {LATCH}


def test_correlations_equal_those_of_numpy():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(6, 50, 3, generator=rng, dtype=torch.float64)
    labels = torch.randn(6, 50, 2, generator=rng, dtype=torch.float64)
    labels[3:, :, 0] += x[3:, :, 1]  # the second half only
    chunks = ({"a/h": part[..., :2], "b/c": part[..., 2:].atanh()} for part in x.split(7, 1))
    halves = correlate_halves(chunks, labels)
    for half, rows in zip(halves, (slice(3), slice(3, None)), strict=True):
        expected = np.corrcoef(x[rows, :, :2].reshape(-1, 2).T, labels[rows].reshape(-1, 2).T)[:2, 2:]
        np.testing.assert_allclose(half["a/h"].numpy(), expected, atol=1e-12)


def test_the_report_is_of_the_other_half():
    """A unit that follows the probe on the first half by chance has no r on the second."""
    rng = torch.Generator().manual_seed(0)
    values = torch.randn(8, 500, 40, generator=rng, dtype=torch.float64)
    probe = values[..., 3:4].clone()
    probe[4:] = torch.randn(4, 500, 1, generator=rng, dtype=torch.float64)
    halves = (torch.from_numpy(with_controls(half.reshape(-1, 1).numpy())) for half in probe.split(4))
    labels = torch.cat([half.view(4, 500, -1) for half in halves])
    (cell,) = find_cells(correlate_halves([{"x/h": values}], labels), ["probe"])
    assert cell.unit == 3
    assert cell.search_r == pytest.approx(1)
    assert abs(cell.r) < 0.1
    assert 0 < cell.control < 0.1, "the best of 40 units of noise"


def test_controls_keep_neighbors_alike():
    labels = np.repeat(np.arange(50.0), 20)[:, None] % 7
    controls = with_controls(labels)[:, 1:]
    for control in controls.T:
        assert sorted(control) == sorted(labels[:, 0])
        assert (np.diff(control) != 0).sum() <= (np.diff(labels[:, 0]) != 0).sum() + 1
        assert (control != labels[:, 0]).any()


def test_a_token_has_the_label_of_its_last_character():
    text, characters = 'a"bc"d', np.array([2, 1, 2, 1])
    labels = token_labels({"quotes": PROBES["quotes"]}, text, characters)
    assert labels[:, 0].tolist() == [1, 1, 0, 0]


def test_ablation_clamps_one_unit(latch):
    tokens = torch.from_numpy(latch.processor.encode(latch.text))[None, :300]
    model = latch.model
    before = log_probability(model, tokens, 32)
    with torch.inference_mode():
        logits = model.project(model(tokens)[0])[0, :-1]
    expected = -torch.nn.functional.cross_entropy(logits, tokens[0, 1:])
    assert before == pytest.approx(float(expected), abs=1e-5)
    model.projection.weight.data[:, LATCH] += 3
    unit = log_probability_without(model, LAYER, LATCH, tokens, 32)
    model.projection.weight.data[:, LATCH] = 0
    model.stack.blocks[0].mixer.cell.weight_hidden.data[:, LATCH] = 0
    without = log_probability(model, tokens, 32)
    assert unit != pytest.approx(without, abs=1e-6), "its mean is not 0"
    same = log_probability_without(model, LAYER, LATCH, tokens, 32)
    assert same == pytest.approx(without, abs=1e-6), "nothing reads the unit"
    assert log_probability(model, tokens, 32) == without, "the model is as it was"


def test_the_search_takes_the_largest_correlation_whatever_its_sign():
    search = torch.tensor([[0.5, 0.0], [-0.9, 0.1]])
    (cell,) = find_cells(({"x/h": search}, {"x/h": search}), ["probe", "other"])[:1]
    assert cell.unit == 1
    assert cell.search_r == pytest.approx(-0.9)


def test_the_liveliest_part_is_shown():
    """Each label counts by its own size and at most once, so that a rare or large one hides no others."""
    labels = torch.zeros(20 * SHOWN_TOKENS, 3)
    labels[0, 0] = 1000
    labels[SHOWN_TOKENS::2, 1] = 0.1
    labels[2 * SHOWN_TOKENS : 3 * SHOWN_TOKENS : 2, 2] = 0.1
    assert liveliest(labels) == slice(2 * SHOWN_TOKENS, 3 * SHOWN_TOKENS)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_log_probability_is_the_mean_over_all_tokens_but_the_first(rows):
    """By hand: the text read token by token, in rows longer than a chunk."""
    torch.manual_seed(0)
    run = language_run("abcdefg ", "model.width=6")
    tokens, model = torch.randint(8, (rows, 150)), run.model
    total, state = 0.0, model.init_state(None, rows)
    with torch.inference_mode():
        for t in range(149):
            features, state, _ = model(tokens[:, t : t + 1], state)
            scores = model.project(features[:, 0]).log_softmax(1)
            total += float(scores[torch.arange(rows), tokens[:, t + 1]].sum())
    assert log_probability(model, tokens, 32) == pytest.approx(total / (149 * rows), abs=1e-5)


def test_a_held_unit_is_held_in_the_output_too(latch):
    """The next layer reads y = h, not only the next step."""
    mixer = latch.model.stack.blocks[0].mixer
    x = latch.model.embedding(torch.tensor([[0, 1, 2]]))
    with torch.inference_mode(), held_unit(latch.model, LAYER, 2, {"c": 0.25, "h": 0.75}):
        y, state = mixer(x, mixer.init_state(1))[:2]
    assert y[0, :, 2].tolist() == [0.75] * 3
    assert (float(state["c"][0, 2]), float(state["h"][0, 2])) == (0.25, 0.75)


def test_shown_text_has_the_states_after_what_stands_before(latch, monkeypatch):
    """The values of the shown part are those of a model that has read the tokens before."""
    start = TOKENS_BEFORE + 100
    monkeypatch.setattr(held_out, "liveliest", lambda labels: slice(start, start + SHOWN_TOKENS))
    text = read_held_out(latch, None, {"quotes": PROBES["quotes"]}, print)
    pieces = text.shown([LAYER], [0])
    shown = "".join(pieces.tokens)
    read = text.reported.flatten()[None, start - TOKENS_BEFORE : start + SHOWN_TOKENS]
    assert shown == latch.processor.decode(read[0, TOKENS_BEFORE:].tolist())
    values = torch.cat([chunk.states[LAYER][0] for chunk in read_chunks(latch.model, read, 32, [LAYER])])
    assert len(pieces.states[LAYER]) == len(shown)
    assert torch.equal(pieces.states[LAYER], values[TOKENS_BEFORE:])
