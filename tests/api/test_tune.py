"""What is tuned, from the arguments of a call."""

from pathlib import Path

from foveal.api.training.choose import choose
from foveal.api.training.options import TrainingOptions
from foveal.api.tune import make_subject


def test_an_option_stands_once_in_the_command(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    data.write_text("review,mood\n" + "a good film,good\na bad film,bad\n" * 40)
    options = TrainingOptions(text="review", label="mood", lr=0.5, seed=7)
    settings = ("model.encoder.width=8",)
    subject = make_subject(choose(str(data), settings, options), settings, options)
    assert subject.given == {"model.encoder.width": "8", "optimizer.lr": "0.5", "training.seed": "7"}
    words = subject.command({"optimizer.lr": "0.001"})
    assert words[:3] == ["foveal", "train", str(data)]
    assert [words.count(each) for each in ("--text", "--label", "optimizer.lr=0.001")] == [1, 1, 1]
    assert not [word for word in words if word.startswith(("data.text", "data.label", "--lr", "--seed"))]
