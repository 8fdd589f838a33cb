"""The published figures of models name their sources."""

import re
from math import prod
from pathlib import Path

import pytest
from pydantic import ValidationError

from foveal.studies.plan.published import PublishedModel, all_published

DOCS = Path(__file__).parents[3] / "docs/plan.md"
ROW = r"\| (?:`(resnet-\d+)`|\[(\S+)\.toml\]\S+) \|(.*)\| ([+-][\d.]+) % \|"
"""A preset or a network of the tables, its cells, and how far the published figure is from the count."""
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
    if phases := re.findall(r"([\d,]+) (?:steps|epochs) of ([\d,]+)(?: x ([\d,]+))?", training.source):
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


def test_the_documentation_says_how_far_figures_are_from_counts_and_explains_more_than_1_5_percent():
    text = DOCS.read_text("utf-8")
    differences = {}
    for network, preset, cells, difference in re.findall(ROW, text):
        published = all_published()[network or preset]
        figure = published.parameters or published.multiplications
        assert figure is not None
        if published.parameters:
            counted = float(re.findall(r"\| ([\d,]{8,}) \|", f"|{cells}|")[0].replace(",", ""))
        else:
            counted = 1e9 * float(cells.split()[-1])
        differences[network or preset] = figure / counted - 1
        assert f"{100 * differences[network or preset]:+.1f}" == difference
    assert differences.keys() == all_published().keys()
    _, explained = text.split("Where no class of Hugging Face matches", 1)
    explained, _ = explained.split("`foveal plan` prints", 1)
    far = {name for name, difference in differences.items() if abs(difference) > 0.015}
    assert {*re.findall(r"`([\w.-]+)`", explained)} == {*far, "gpt2-xl"}  # of the lectures alone
