"""The example of one's own cell trains, writes, and stands in the table of the laws."""

import re

from examples.own_cell import MinimalGated, main
from tests.layers.rows import ROWS


def test_it_trains_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path / "cache"))
    text = tmp_path / "text.txt"
    text.write_text("The cat sat on the mat. The dog ate the hat.\n" * 300, encoding="utf-8")
    written = main(str(text), steps=100, width=48)
    losses = [float(loss) for loss in re.findall(r"([\d.]+) nats", capsys.readouterr().out)]
    assert losses[0] > 2.5
    assert losses[-1] < 1.2
    assert len(written) == 200


def test_the_laws_are_held_to_it():
    assert isinstance(ROWS["own-cell"].make().cell, MinimalGated)
