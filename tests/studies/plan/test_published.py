"""The published figures of models name their sources."""

import re

import pytest

from foveal.studies.plan.published import all_published

PLACE = r"(table|section|figure) [A-Z]?[\d.]+"
REPORT = "Rosset, Microsoft Research Blog 2020"
"""A page without sections."""


@pytest.mark.parametrize("preset", all_published())
def test_a_figure_names_its_paper_and_the_place_in_the_paper(preset):
    published = all_published()[preset]
    assert published.source == REPORT or re.fullmatch(rf"[A-Z]\w+ et al\. 20\d\d, {PLACE}", published.source)


@pytest.mark.parametrize("preset", [name for name, model in all_published().items() if model.training])
def test_the_tokens_of_a_training_have_a_place_or_follow_from_its_steps(preset):
    training = all_published()[preset].training
    assert training is not None
    if steps := re.match(r"([\d,]+) steps of (\d+) x ([\d,]+) tokens", training.source):
        count, rows, length = (int(number.replace(",", "")) for number in steps.groups())
        assert training.tokens == count * rows * length
    else:
        assert re.fullmatch(PLACE, training.source)
