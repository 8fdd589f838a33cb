"""The options of a training as words of its command."""

from dataclasses import fields
from pathlib import Path

from foveal.api.training.options import NO_OPTIONS, TrainingOptions
from foveal.cli import APP

ALL = TrainingOptions(
    task="translation",
    model="translation",
    start_from=Path("runs/a"),
    text="en",
    label="mood",
    target="de",
    valid="v.csv",
    test="two words.csv",
    run=Path("runs/b"),
    budget="9steps",
    epochs=3,
    lr=1e-3,
    batch=8,
    slots=2,
    seed=0,
    pretrained="no",
    device="cpu",
    log=("csv", "wandb"),
)


def test_the_command_reads_the_options_from_their_words() -> None:
    _, bound, _ = APP.parse_args(["train", "data", *ALL.words()], exit_on_error=False, print_error=False)
    assert bound.arguments["options"] == ALL
    assert [each.name for each in fields(ALL) if getattr(ALL, each.name) == each.default] == []


def test_defaults_are_left_out() -> None:
    assert NO_OPTIONS.words() == []
