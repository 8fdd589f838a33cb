"""The published figures of models name their sources."""

import re
from math import prod

import pytest
from pydantic import ValidationError

from foveal.studies.plan.published import PublishedModel, all_published

PLACE = r"(table|section|figure) [A-Z]?[\d.]+"
REPORT = "Rosset, Microsoft Research Blog 2020"
"""A page without sections."""


@pytest.mark.parametrize("preset", all_published())
def test_a_figure_names_its_paper_and_the_place_in_the_paper(preset):
    published = all_published()[preset]
    assert published.source == REPORT or re.fullmatch(rf"[A-Z]\w+ et al\. 20\d\d, {PLACE}", published.source)


@pytest.mark.parametrize("preset", all_published())
def test_a_figure_is_explained_beside_the_count(preset):
    published = all_published()[preset]
    assert published.difference.strip()
    assert published.parameters or published.multiplications


def test_a_figure_without_an_explanation_is_refused():
    with pytest.raises(ValidationError, match="difference"):
        PublishedModel(parameters=1, source="Radford et al. 2019, table 2", difference="")


@pytest.mark.parametrize("preset", [name for name, model in all_published().items() if model.training])
def test_the_tokens_of_a_training_have_a_place_or_follow_from_its_steps(preset):
    training = all_published()[preset].training
    assert training is not None
    if phases := re.findall(r"([\d,]+) steps of ([\d,]+)(?: x ([\d,]+))?", training.source):
        numbers = [[int(number.replace(",", "") or 1) for number in phase] for phase in phases]
        assert training.tokens == sum(map(prod, numbers))
    else:
        assert re.fullmatch(PLACE, training.source)


@pytest.mark.parametrize("preset", ["transformer-base", "transformer-big"])
def test_operations_of_the_translation_table_are_hours_times_the_peak(preset):
    """Vaswani et al. 2017, table 2: eight P100, and not the operations that a training takes."""
    training = all_published()[preset].training
    assert training is not None
    hours, devices, peak = (float(number) for number in re.findall(r"[\d.]+", training.reckoning))
    assert training.flops == pytest.approx(hours * 3600 * devices * peak * 1e12, rel=0.01)
