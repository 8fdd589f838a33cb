"""`foveal inspect RUN updates`, and of models before training."""

import json
from pathlib import Path

from tests.support.command_line import refuse, succeed

SMALL = ("data.image.size=8", "data.image.batch_size=4")


def test_of_a_run(run: Path) -> None:
    (rows,) = json.loads(succeed("inspect", run, "updates", "--json").out)["updates"].values()
    assert {"embedding", "projection"} <= {row["layer"] for row in rows}
    assert all(row["ratio"] > 0 for row in rows)
    (still,) = json.loads(succeed("inspect", run, "updates", "--rate", "0", "--json").out)["updates"].values()
    assert all(row["ratio"] == 0 for row in still)
    for rate in ("-1", "1e300"):
        assert "expected a number from 0 to" in refuse("inspect", run, "updates", "--rate", rate)
    assert "leave out --initialization and --data" in refuse(
        "inspect", run, "updates", "--initialization", "0.01"
    )


def test_of_first_weights_side_by_side() -> None:
    printed = succeed(
        "inspect", "mlp", "updates", *SMALL, "--initialization", "0.01,kaiming", "--out", "x.png"
    ).out
    assert "kaiming" in printed
    assert Path("x.png").stat().st_size > 10_000
