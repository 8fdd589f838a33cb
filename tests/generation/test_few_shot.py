"""Few-shot prompts: what stands before a source, and where an answer ends."""

import pytest

from foveal.core.errors import UserError
from foveal.generation.few_shot import DEFAULT_TEMPLATE, FewShotPrompt, PromptTemplate


def test_the_prompt_is_the_examples_and_the_source() -> None:
    shots = FewShotPrompt((("a", "A"), ("b c", "B C")), PromptTemplate.parse(DEFAULT_TEMPLATE))
    assert shots.prompt("d") == "input: a\noutput: A\n\ninput: b c\noutput: B C\n\ninput: d\noutput:"
    assert shots.stops == ("\n",)


def test_a_template_of_the_user() -> None:
    shots = FewShotPrompt((("a", "A"),), PromptTemplate.parse(r"Q: {source}\tA: {target}; "))
    assert shots.prompt("{target}") == "Q: a\tA: A; Q: {target}\tA:"
    assert shots.stops == ("\n", ";")


@pytest.mark.parametrize(
    "text",
    ["", "{source}", "{target}", "{target} {source}", "{source}{target}", "{source} {source} {target}"],
)
def test_a_template_needs_source_and_target(text: str) -> None:
    with pytest.raises(UserError, match=r"--template: it needs \{source\} and then \{target\}"):
        PromptTemplate.parse(text)
