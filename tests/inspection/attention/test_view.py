"""Attention by head: hand-built heads whose places are known, closed forms, and every kind of run."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from benchmarks.kill import own_cache
from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.attention import compute
from foveal.inspection.attention.compute import pool_weights, summarize_layer
from foveal.inspection.attention.layers import AttentionLayer, capture_attention
from foveal.inspection.attention.panels import grid_panels, head_panel, words_over_image
from foveal.inspection.attention.view import AttentionOptions, AttentionView, outstanding_heads
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input
from foveal.inspection.files import payload_file
from foveal.inspection.panels import Heatmap, Images
from foveal.layers.mixers.self_attention import SelfAttention
from tests.support.attention_layers import layer_of
from tests.support.untrained_runs import KINDS, UntrainedRun

T = 8
SHARP = 300.0
ATTENDING = (
    *("language-model", "masked-lm", "text-classification", "translation", "transduction"),
    *("image-classification", "captioning", "hard-captioning", "vqa"),
)
OVER_IMAGES = ("image-classification", "captioning", "hard-captioning")
_made: dict[str, UntrainedRun] = {}


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def run_of(kind: str) -> UntrainedRun:
    if kind not in _made:
        _made[kind] = KINDS[kind]()
    return _made[kind]


class HandBuilt(nn.Module):
    """Head 0 reads the previous position, head 1 the first. The inputs are positions as one-hot vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.mixer = SelfAttention(2 * T, heads=2)
        positions = torch.eye(T)
        with torch.no_grad():
            self.mixer.query.weight.zero_()
            self.mixer.key.weight.zero_()
            self.mixer.query.weight[:T, :T] = SHARP * positions
            self.mixer.key.weight[1:T, : T - 1] = torch.eye(T - 1)
            self.mixer.query.weight[T, :T] = SHARP
            self.mixer.key.weight[T, 0] = 1

    def log_probabilities(self, batch: Tensor) -> Float[Tensor, " N"]:
        return self.mixer(batch)[0].flatten()

    def with_own_answer(self, batch: Tensor) -> Tensor:
        return batch


@pytest.fixture(scope="module")
def hand_built() -> list[AttentionLayer]:
    model, names = HandBuilt().eval(), tuple("abcdefgh")
    inputs = torch.nn.functional.pad(torch.eye(T), (0, T))[None]
    return capture_attention(model, ChosenInput(inputs, names, names, model))


def test_heads_that_were_built_by_hand_are_where_they_were_built(hand_built: list[AttentionLayer]) -> None:
    (layer,) = hand_built
    assert (layer.kind, layer.keys) == ("causal", tuple("abcdefgh"))
    summary = summarize_layer(layer, 64)
    facts = dict(outstanding_heads(hand_built, [summary]))
    assert facts["previous"] == "head 0 of layer 0 looks at the previous token: 1.00 of its weight"
    assert facts["first"] == "head 1 of layer 0 looks at the first position: 1.00 of its weight"
    (grid,) = grid_panels(hand_built, [summary])
    for head, read in ((0, [0, *range(T - 1)]), (1, [0] * T)):
        values = head_panel(layer, head).array.values
        np.testing.assert_array_equal(values[range(T), read] > 0.99, True)
        np.testing.assert_array_equal(np.isnan(values), np.triu(np.ones((T, T), bool), 1))
        np.testing.assert_array_equal(values, grid.array.values[0, head])


def test_closed_forms() -> None:
    uniform = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    previous = torch.eye(T).roll(1, 0).tril(-1) + torch.eye(T) * (torch.arange(T) == 0)
    (even, shifted) = summarize_layer(layer_of(torch.stack([uniform, previous]), "causal"), 64).statistics
    n = range(1, T + 1)
    assert even.entropy == pytest.approx(sum(map(math.log, n)) / T)
    assert even.distance == pytest.approx(sum((i - 1) / 2 for i in n) / T)
    assert even.first == even.itself == even.largest == pytest.approx(sum(1 / i for i in n) / T)
    assert even.previous == pytest.approx(sum(1 / i for i in n if i > 1) / (T - 1))
    assert shifted.previous == shifted.largest == 1
    assert (shifted.entropy, shifted.itself, shifted.first) == (0, 1 / T, 2 / T)
    assert shifted.distance == (T - 1) / T
    (crossing,) = summarize_layer(layer_of(uniform[None], "cross"), 64).statistics
    assert math.isnan(crossing.distance) and math.isnan(crossing.previous)  # noqa: PT018
    patches = torch.zeros(1, 5, 5)
    patches[0, range(5), [0, 4, 4, 4, 4]] = 1  # the class token reads itself, all patches the last of 2 x 2
    (seen,) = summarize_layer(layer_of(patches, grid=(2, 2)), 64).statistics
    assert seen.distance == pytest.approx((math.sqrt(2) + 1 + 1 + 0) / 4)
    assert math.isnan(seen.previous)


def test_long_maps_are_pooled_by_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.rand(2, 23, 23).tril()
    weights /= weights.sum(2, keepdim=True)
    layer = layer_of(weights, "causal")
    whole = summarize_layer(layer, 5)
    monkeypatch.setattr(compute, "ROWS_AT_ONCE", 7)
    assert whole.cell == (5, 5)
    blocks = summarize_layer(layer, 5)
    torch.testing.assert_close(blocks.maps, whole.maps, equal_nan=True)
    np.testing.assert_allclose(blocks.statistics, whole.statistics, atol=1e-6)
    visible = torch.ones(1, 23, 23, dtype=torch.bool).tril()
    pooled = pool_weights(weights[:1], visible, (5, 5))[0]
    cell = weights[0, 5:10, 5:10][visible[0, 5:10, 5:10]]
    assert float(pooled[1, 1]) == pytest.approx(float(cell.mean()))
    assert bool(pooled[0, 1:].isnan().all())


def test_weights_stand_over_their_squares() -> None:
    weights = np.array([[0.0, 0.0, 0.5, 0.0, 0.0, 0.0], [0, 0, 0, 0, 0, 1.0]])
    (row,) = words_over_image(weights, ("cat", "dog"), (2, 3), np.zeros((4, 6, 3), np.uint8))
    plain, first, second = row.tiles
    assert plain is not None and plain.heat is None  # noqa: PT018
    assert first is not None and first.heat is not None and first.heat[0, 2] == 0.5  # noqa: PT018
    assert second is not None and second.heat is not None and second.heat[1, 2] == 1  # noqa: PT018


@pytest.mark.parametrize("kind", ATTENDING)
def test_every_kind_of_run_that_attends(kind: str) -> None:
    run, view = run_of(kind), AttentionView()
    assert view.fits(run) == ""
    payload = view.compute(run, AttentionOptions(), print, no_progress)
    first = next(panel for panel in payload.panels if isinstance(panel, Heatmap))
    np.testing.assert_allclose(np.nansum(first.array.values, 1), 1, atol=1e-4)
    assert any(isinstance(panel, Images) for panel in payload.panels) == (
        kind in ("image-classification", "captioning", "hard-captioning")
    )
    assert payload.to_json()["heads"]
    before = {name: weight.clone() for name, weight in run.model.state_dict().items()}
    (cost,) = view.ablate(run, AttentionOptions(), print)
    assert cost.before != cost.after
    assert all(torch.equal(weight, before[name]) for name, weight in run.model.state_dict().items())
    assert view.ablate(run, AttentionOptions(), print)[0].before == cost.before


def test_ablation_is_a_head_without_output() -> None:
    run = run_of("language-model")
    options = AttentionOptions(layer="0", head=1)
    (cost,) = AttentionView().ablate(run, options, print)
    changed = replace(run)
    weight = run.model.stack.blocks[0].mixer.output.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[:, 8:] = 0
    assert cost.after == pytest.approx(AttentionView().ablate(changed, options, print)[0].before, abs=1e-5)
    with torch.no_grad():
        weight.copy_(kept)


def first_changed_rows(kind: str, column: str, place: int) -> dict[str, tuple[int, AttentionLayer]]:
    """Return by kind of attention the first query whose weights change with one token."""
    run = run_of(kind)
    chosen = choose_input(run, InputOptions(), print)
    batch, part = (
        chosen.batch,
        {"inputs": chosen.batch.inputs} if column == "inputs" else chosen.batch.columns,
    )
    tokens = part[column].clone()
    rows = tokens[0] if tokens.shape[0] == 1 else tokens[:, 0]
    rows[place] = 3 if rows[place] != 3 else 4
    changes = {"inputs": tokens} if column == "inputs" else {"columns": part | {column: tokens}}
    found = dict[str, Any]()
    with torch.no_grad():
        pairs = zip(
            capture_attention(run.model, chosen),
            capture_attention(run.model, replace(chosen, batch=replace(batch, **changes))),
            strict=True,
        )
    for layer, other in pairs:
        differ = (layer.weights() - other.weights()).abs().amax((0, 2)) > 0
        if not layer.path.startswith("encoder.") and differ.any():
            found.setdefault(layer.kind, (int(differ.nonzero()[0]), layer))
    return found


def test_a_row_of_a_target_is_named_by_what_it_reads_or_writes() -> None:
    """The token 1 changes what comes after it: the row that reads it, and the row that writes the next."""
    target = choose_input(run_of("translation"), InputOptions(), print).target
    found = first_changed_rows("translation", "target", 1)
    row, own = found["causal"]
    assert (row, own.queries[row]) == (2, target[1])
    assert own.queries == own.keys == ("<start>", *target[:-1])
    row, cross = found["cross"]
    assert (row, cross.queries[row]) == (2, target[2])
    assert cross.queries == target
    assert cross.keys == choose_input(run_of("translation"), InputOptions(), print).source


def test_a_row_of_a_text_is_named_by_what_it_reads() -> None:
    source = choose_input(run_of("language-model"), InputOptions(), print).source
    row, layer = first_changed_rows("language-model", "inputs", 3)["causal"]
    assert (row, layer.queries, layer.keys) == (3, source, source)


@pytest.mark.parametrize("text", ["a", "the cat 🐈", "a שלום cat", "a\u0301 cat the"])
def test_texts_of_all_kinds(text: str) -> None:
    run = run_of("translation")
    payload = AttentionView().compute(run, AttentionOptions(text=text), print, no_progress)
    assert payload_file(payload, ".json")


def test_a_picture() -> None:
    payload = AttentionView().compute(run_of("captioning"), AttentionOptions(), print, no_progress)
    assert payload_file(payload, ".png")[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"layer": "9"}, "--layer 9: name one layer"), ({"head": 9}, "--head 9: the layer has 4 heads")],
)
def test_no_such_head(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        AttentionView().compute(run_of("translation"), AttentionOptions(**options), print, no_progress)


def test_a_run_without_attention_does_not_fit() -> None:
    assert AttentionView().fits(run_of("tagging")) == "the model has none of Foveal's attention layers"
