"""Lines of the command line, as the page says them."""

import pytest

from foveal.api.page.page_words import PageWords

WORDS = PageWords({"data", "row", "text", "layer", "head", "step_size"}, {"/tmp/x/0/cat.png": "cat.png"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--row 99: valid has 3 rows", "row 99: valid has 3 rows"),
        ("name another text with --data", "name another text with the field data"),
        ("--text is empty: write a text", "the field text is empty: write a text"),
        ("reads more: name --data FILE", "reads more: name the field data"),
        ("; --layer and --head name others", "; the field layer and the field head name others"),
        ("--step-size 0.5: too large", "step size 0.5: too large"),
        ("which --control measures", "which the control measures"),
        ("longer: foveal resume RUN --budget +10m", "longer: foveal resume RUN --budget +10m"),
        ("/tmp/x/0/cat.png: no image", "cat.png: no image"),
        ("a --- b, data--row", "a --- b, data--row"),
    ],
)
def test_options_are_fields(line: str, said: str) -> None:
    assert WORDS(line) == said
