"""Plans against real processes, and against published efficiencies."""

import pytest

from benchmarks.plan_megatron import efficiencies
from benchmarks.plan_memory import GOAL, LAYOUTS, SETTINGS, predicted_and_measured
from foveal.studies.plan.layout import Layout

RECOMPUTES = (*SETTINGS, "training.activation_checkpointing=true")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("settings", [SETTINGS, RECOMPUTES])
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.ranks > 1])
def test_processes_hold_what_is_planned(layout, settings, request):
    if settings is RECOMPUTES and (layout.ep > 1 or layout.virtual_stages > 1):
        request.applymarker(pytest.mark.xfail(reason="0.82 and 1.28 of it were measured (docs/plan.md)"))
    planned, measured = predicted_and_measured(layout, settings)
    # What gloo holds late depends on the processor: 0.89 of it on one, 0.83 on another (docs/plan.md).
    goal = 0.2 if settings is RECOMPUTES and layout.tp == 4 else GOAL
    assert planned == pytest.approx(measured, rel=goal)


@pytest.mark.parametrize("settings", [SETTINGS, RECOMPUTES])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_one_process_holds_what_is_planned(micro_batches, settings):
    planned, measured = predicted_and_measured(Layout(micro_batches=micro_batches), settings)
    assert planned == pytest.approx(measured, rel=0.01)


def test_efficiencies_are_those_of_megatron():
    """One figure is set, from the first row. The plan waits for all sums of gradients, so the last row is
    lower than published."""
    rows, _ = efficiencies()
    assert [row.published for row in rows] == [1.0, 0.96, 0.95, 0.83, 0.82, 0.79, 0.77, 0.74]
    assert [row.planned for row in rows[:7]] == pytest.approx([row.published for row in rows[:7]], abs=0.06)
    assert rows[7].planned == pytest.approx(rows[7].published, abs=0.13)
