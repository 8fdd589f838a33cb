"""What a head is compared with: the entropy that its mask allows, and the same head of random weights."""

import math
import re

import pytest
import torch

from benchmarks.kill import own_cache
from foveal.api.view import compute_payload
from foveal.core.progress import no_progress
from foveal.inspection.attention.view import AttentionOptions, AttentionView
from foveal.inspection.registry import VIEWS
from tests.support.untrained_runs import KINDS, UntrainedRun


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> UntrainedRun:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    return KINDS["language-model"]()


def test_uniform_causal_attention_has_the_largest_entropy(run: UntrainedRun) -> None:
    with torch.no_grad():
        for name, weight in run.model.named_parameters():
            if ".query." in name:
                weight.zero_()
    payload = AttentionView().compute(run, AttentionOptions(text="the big"), print, no_progress)
    sizes = [math.log(keys) for keys in range(1, 8)]
    expected = f"{sum(sizes) / len(sizes):.2f}"
    numbers = re.findall(r"entropy ([\d.]+) of at most ([\d.]+) nats", dict(payload.facts)["broadest"])
    assert numbers == [(expected, expected)]


def test_the_control_shows_the_same_head(run: UntrainedRun) -> None:
    """Whichever head the random weights would choose: each head in turn has the largest weights."""
    view = VIEWS["attention"]
    for head in range(2):
        kept = {name: weight.clone() for name, weight in run.model.state_dict().items()}
        with torch.no_grad():
            for name, weight in run.model.named_parameters():
                if name.endswith("mixer.query.weight"):
                    weight.view(2, -1)[head] *= 100
        payload = compute_payload(view, run, AttentionOptions(), True, print, no_progress)
        run.model.load_state_dict(kept)
        assert (
            payload.values["shown"] == payload.values["random_weights"]["shown"] == {"layer": 0, "head": head}
        )
