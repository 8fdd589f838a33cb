"""The time and the cost of a whole training, by its budget or as published."""

import pytest

import foveal
from foveal.api.results.counted_plan import CountedPlan
from foveal.studies.plan.published import PublishedModel
from foveal.studies.plan.training_length import TrainingLength, length_of_budget
from foveal.studies.plan.training_report import training_json, training_sections

SETTINGS = {
    "model.layers": 1,
    "model.width": 32,
    "data.context_length": 16,
    "data.batch_tokens": 64,
    "training.budget": "1000steps",
}


def test_a_budget_in_steps_or_tokens_is_a_number_of_whole_steps() -> None:
    assert length_of_budget("10steps", 64, "tokens") == TrainingLength(
        tokens=640, source="10 steps of 64 tokens"
    )
    assert length_of_budget("65tokens", 64, "tokens") == length_of_budget("2steps", 64, "tokens")
    assert length_of_budget("1step", 8, "images") == TrainingLength(tokens=8, source="1 step of 8 images")


@pytest.mark.parametrize("budget", ["3m", "2epochs"])
def test_a_budget_in_time_or_epochs_has_no_length_without_data(budget: str) -> None:
    assert length_of_budget(budget, 64, "tokens") is None


def test_the_training_of_settings_has_a_time_and_a_cost_beside_the_published_one() -> None:
    made = foveal.plan("attention", ranks=2, price_per_hour=3.0, settings=SETTINGS, quiet=True)
    assert isinstance(made, CountedPlan)
    plan, seconds = made.plan, 1000 * made.step_seconds
    values = made.to_json()["trainings"]["settings"]
    flops = plan.flops_per_token * 64_000
    assert values == pytest.approx(
        {"tokens": 64_000, "flops": flops, "seconds": seconds, "cost": 3 * 2 * seconds / 3600}
    )
    title, facts = [*made.sections()][-4:-2]
    assert title == "\nthe training of these settings"
    assert ("tokens", "64,000 (1,000 steps of 64 tokens)") in facts
    assert str(facts[-1][1]).endswith(", at 3 an hour")
    longer, rounded = (
        PublishedModel(
            parameters=1,
            source="a paper",
            difference="rounded",
            training=TrainingLength(tokens=tokens, source="a place"),
        )
        for tokens in (10**15, 63_900)
    )
    days = seconds / 64_000 * 10**15 / 86400
    first, facts, second, _ = training_sections(plan, longer, None)
    assert (first, second) == ("\nthe training as published", title)
    assert str(facts[2][1]).startswith(f"{days:,.1f} days on 2 x h100, ")
    assert training_sections(plan, rounded, None)[::2] == ["\nthe training as published"]
    assert training_json(plan, rounded, None).keys() == {"published", "settings"}
