"""Words of other programs lead to ours."""

import pytest

from tests.support.command_line import TINY_MODEL, refuse


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("epochs=5",), "did you mean --budget 5epochs?"),
        (("--learning-rate", "0.1"), "did you mean optimizer.lr=VALUE?"),
        (("lr=0.1",), "did you mean optimizer.lr=VALUE?"),
        (("learning_rate=0.1",), "did you mean optimizer.lr=VALUE?"),
        (("--gpu",), "did you mean --device cuda?"),
        (("batch_size=32",), "did you mean data.image.batch_size=VALUE (images) or data.batch_tokens=VALUE"),
        (("--batch-size", "32"), "data.batch_tokens=VALUE"),
        (("--model", "resnet18"), "unknown preset or network 'resnet18'; did you mean 'resnet-18'?"),
        (("resnet18",), "a model is named with --model NAME"),
        (
            ("data.label=true",),
            """expected text; in quotes it is text: 'data.label="true"'""",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_right_word_is_named(arguments: tuple[str, ...], hint: str) -> None:
    assert hint in refuse("train", "text.txt", *TINY_MODEL, *arguments)


@pytest.mark.parametrize("command", [("train",), ("evaluate",), ("train", "text.txt", "--run"), ("import",)])
def test_a_path_that_no_file_system_takes_is_the_users(command: tuple[str, ...]) -> None:
    line = refuse(*command, "x" * 300)
    assert "File name too long" in line or "no such file or folder, and no data set" in line
