"""Curves have the numbers of the log, and their names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.inspection.curves.compute import SMOOTHING_DIVISOR, positions, smooth, y_limits
from foveal.inspection.curves.log_records import LoggedTraining, read_metrics_log
from foveal.inspection.curves.panels import curves_payload
from foveal.inspection.files import payload_file
from foveal.inspection.panels import Lines, Table
from foveal.store.manifest import LogUnits
from foveal.store.run import RunFolder

Logged = Callable[..., LoggedTraining]


def step(number: int, loss: float | None, **more: Any) -> dict[str, Any]:
    usual = {"rate": 0.1, "tokens": 16 * number, "gradient_norm": 3.0, "seconds": number / 2}
    return {"kind": "step", "step": number, "loss": loss} | usual | more


def evaluation(number: int, loss: float | None, **more: Any) -> dict[str, Any]:
    return {"kind": "evaluation", "step": number, "loss": loss} | more


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    """Write a run with some lines in its log and its config."""

    def write(
        records: list[dict[str, Any]], name: str = "run", toml: str = "", outcomes: int | None = None
    ) -> LoggedTraining:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
        (folder / "config.toml").write_text(toml)
        units = LogUnits(speed_unit="images", loss_unit="image", num_outcomes=outcomes)
        return LoggedTraining(RunFolder(folder, Config(), {"data": {}}), name, units)

    return write


def test_the_panels_have_the_log(logged: Logged) -> None:
    losses = [2 / n for n in range(1, 9)]
    held_out = [evaluation(4, 0.75, bits_per_character=1.0), evaluation(8, 0.375)]
    training = logged([*(step(n + 1, loss) for n, loss in enumerate(losses)), *held_out])
    payload = curves_payload(training)
    curves, gradients, rates = payload.panels
    assert isinstance(curves, Lines)
    assert isinstance(gradients, Lines)
    assert isinstance(rates, Lines)
    assert curves.y_label == "loss in nats per image"
    names = {series.name: [*zip(series.x, series.y, strict=True)] for series in curves.series}
    assert names["training, each step"] == [*enumerate(losses, 1)]
    assert names["held out"] == [(4, 0.75), (8, 0.375)]
    assert names["best 0.375 nats"] == [(8, 0.375)]
    assert [*gradients.series[0].y] == [3.0] * 8
    assert [series.y[0] for series in gradients.series if series.name == "clipped to 1"] == [1.0]
    assert rates.x_label == "step (of 16 images)"
    assert rates.limits == pytest.approx((0.0, 0.105)), "room above the highest rate"
    assert payload.facts == (("diagnosis", "8 steps are too few for a diagnosis"),)
    assert payload.to_json()["evaluation"][0]["loss"] == 0.75
    assert payload_file(payload, ".png").startswith(b"\x89PNG")


def test_findings_are_in_title_facts_and_picture(logged: Logged) -> None:
    training = logged([step(n, 9 * 0.95**n + 1) for n in range(1, 80)], outcomes=10)
    payload = curves_payload(training)
    (first, _, advice, *_) = payload.facts
    assert first[0] == "bad first weights: first loss"
    assert "the first loss is 9.550; a guess among 10 outcomes has 2.303" in first[1]
    assert advice[1].startswith("try ")
    assert payload.title.startswith("run · bad first weights: first loss")
    assert payload.values["findings"][0]["step"] == 1
    (curves, *_) = payload.panels
    assert isinstance(curves, Lines)
    (mark,) = [series for series in curves.series if series.name == "bad first weights: first loss, step 1"]
    assert ([*mark.x], mark.y) == ([1, 1], curves.limits)


def test_several_runs_share_the_axes(logged: Logged) -> None:
    one = logged([step(n, 2.0) for n in (1, 2, 3)] + [evaluation(2, 1.5)], "one")
    other = logged([step(n, 4.0, rate=9.0, seconds=10.0 * n) for n in (1, 2)], "other")
    payload = curves_payload(one, [other], "seconds")
    curves, _, rates, table = payload.panels
    assert isinstance(curves, Lines)
    assert isinstance(rates, Lines)
    assert isinstance(table, Table)
    assert {series.name: (series.color, series.style, [*series.x]) for series in curves.series} == {
        "one, training": (0, "faint", [0.5, 1.0, 1.5]),
        "one, held out": (0, "dots", [1.0]),
        "other, training": (1, "line", [10.0, 20.0]),
    }
    assert curves.limits is not None
    assert curves.limits[0] < 1.5 < 4.0 < curves.limits[1]
    assert rates.log_y
    assert rates.x_label == "seconds of training"
    assert table.rows[0] == ("one", "1.5000", "2", "3", "0.0", "2.0000", "")
    assert table.rows[1][:5] == ("other", "", "", "2", "0.3")
    assert payload.values["others"][0]["step"][1]["loss"] == 4.0
    assert [name for name, _ in payload.facts] == ["one: diagnosis", "other: diagnosis"]
    assert payload_file(payload, ".svg")


def test_the_smoothed_line_is_a_mean_of_the_steps_before() -> None:
    """With weights that fall from step to step, and a sum of 1 from the first step on."""
    count = 4 * SMOOTHING_DIVISOR
    found = smooth([8.0, 4.0] + [0.0] * (count - 2))
    assert found[:2] == pytest.approx([8, (0.75 * 8 + 4) / 1.75])
    assert found[2] == pytest.approx((0.75**2 * 8 + 0.75 * 4) / (0.75**2 + 0.75 + 1))
    assert smooth([5.0] * count) == pytest.approx([5.0] * count)


def test_the_picture_and_the_table_have_the_smoothed_losses(logged: Logged) -> None:
    losses = [5.0 - number % 2 for number in range(2 * SMOOTHING_DIVISOR)]
    training = logged([step(number, loss) for number, loss in enumerate(losses, 1)])
    (curves, *_, table) = curves_payload(training, [training]).panels
    assert isinstance(table, Table)
    last = smooth(losses)[-1]
    assert table.rows[0][5] == f"{last:.4f}" != f"{smooth(losses)[0]:.4f}"
    (curves, *_) = curves_payload(training).panels
    assert isinstance(curves, Lines)
    lines = {series.name: [*series.y] for series in curves.series}
    assert lines["training, each step"] == losses
    assert lines["training, smoothed"] == smooth(losses)


def test_the_rates_of_several_runs_fit_into_one_picture(logged: Logged) -> None:
    runs = [logged([step(1, 1.0, rate=rate)], f"run {rate}") for rate in (0.1, 0.4)]
    *_, rates, _ = curves_payload(runs[0], runs[1:]).panels
    assert isinstance(rates, Lines)
    assert rates.limits == pytest.approx((0.0, 0.42))


def test_a_loss_of_rewards_is_named_so_and_has_no_guess(logged: Logged) -> None:
    training = logged([step(1, 9.0, reward=0.25), evaluation(1, 0.5)], outcomes=10)
    (curves, *_) = curves_payload(training).panels
    assert isinstance(curves, Lines)
    assert curves.y_label == "share of the reward missed"
    assert "best 0.500" in [series.name for series in curves.series]
    assert training.findings == [], "9 would be far above the loss of a guess among 10"


def test_losses_that_were_not_finite_are_left_out(logged: Logged) -> None:
    refused = {"kind": "refused", "step": 2, "loss": None, "culprit": "loss term loss"}
    training = logged([step(1, 2.0), refused, step(3, None), step(4, 1.0), evaluation(4, None)])
    payload = curves_payload(training)
    assert payload.facts[0][0] == "numbers not finite"
    (curves, *_) = payload.panels
    assert isinstance(curves, Lines)
    assert [*curves.series[0].y] == [2.0, 1.0]


def test_a_log_without_steps(logged: Logged) -> None:
    training = logged([])
    assert payload_file(curves_payload(training), ".png")
    assert positions(training, [], "tokens") == []


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("", ()),
        ("[model]\ndropout = 0.0\n[data.augment]\ncrop = 'none'\nflip = false", ()),
        ("[model.encoder]\ndropout = 0.3", ("model.encoder.dropout=0.3",)),
        ("[data.augment]\ncrop = 'pad'\npadding = 4", ("data.augment.crop=pad",)),
        ("[training]\nema_decay = 0.9", ("training.ema_decay=0.9",)),
        ("[model]\nno_dropout = 0.5\nword_dropout = 0.1", ("model.word_dropout=0.1",)),
    ],
)
def test_settings_that_raise_the_training_loss(toml: str, expected: tuple[str, ...], logged: Logged) -> None:
    assert logged([step(1, 1.0)], toml=toml)._regularizers() == expected


@pytest.mark.parametrize("line", ['{"kind": "step"}', "{", '{"kind": "evaluation", "step": 0, "loss": 1}'])
def test_a_damaged_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(f"{line}\n")
    with pytest.raises(UserError, match="line 1: damaged, so the run has no curves"):
        read_metrics_log(tmp_path / "metrics.jsonl")


def test_a_line_that_a_training_is_writing_is_left_out(tmp_path: Path) -> None:
    whole = json.dumps(step(1, 2.0))
    (tmp_path / "metrics.jsonl").write_text(f'{whole}\n{{"kind": "step", "st')
    assert read_metrics_log(tmp_path / "metrics.jsonl") == {"step": [json.loads(whole)]}


def test_a_high_start_does_not_press_the_rest_flat(logged: Logged) -> None:
    losses = [200.0, *([100.0] * 49), *([95.0] * 50)]
    held_out = [evaluation(2, 150.0), evaluation(50, 101.0), evaluation(100, 97.0)]
    limits = y_limits([logged([*(step(n, loss) for n, loss in enumerate(losses, 1)), *held_out])])
    assert limits is not None
    assert 94 < limits[0] < 95
    assert 101 < limits[1] < 125


def test_held_out_losses_are_within_the_limits(logged: Logged) -> None:
    records = [*(step(n, 3 / n) for n in range(1, 101)), evaluation(30, 2.5), evaluation(90, 9.0)]
    limits = y_limits([logged(records)])
    assert limits is not None
    assert limits[0] < 0.03
    assert limits[1] > 9


def test_a_constant_loss(logged: Logged) -> None:
    assert y_limits([logged([step(1, 1.0), step(2, 1.0)])]) == (0.9, 1.1)
