"""Models whose parts don't fit, or that don't fit text or machine: one line, and nothing is left behind."""

from pathlib import Path

import pytest
import torch

from tests.support.command_line import TINY_MODEL, refuse, succeed

pytestmark = pytest.mark.usefixtures("nothing_left")

MODELS = {
    "mixers=attention width=18 attention.heads=4": ["width=18 is not a multiple", "heads=4"],
    "mixers=attention width=18 attention.heads=6 positions.kind=rotary": ["even head width", "18/6 = 3"],
    "mixers=attention attention.window=2000000": ["window=2000000", "less than or equal to 1048576"],
    "mixers=lstm,ltsm": ["unknown mixer 'ltsm'", "did you mean 'lstm'"],
    "mixers=lstm,": ["unknown mixer ''", "known: attention, attention-rnn, conv"],
    "mixers=conv conv.dilations=1,0": ["dilations=1,0: expected numbers from 1", "such as 1,2,4,8"],
    "mixers=conv conv.dilations=1,2,": ["dilations=1,2,: expected numbers from 1"],
    "mixers=conv conv.dilations=2000000": ["dilations=2000000", "from 1 to 1048576"],
    "mixers=conv conv.kernel_size=0": ["kernel_size=0", "greater than 0"],
    "mixers=mamba mamba.conv_kernel=0": ["conv_kernel=0", "greater than 0"],
    "mixers=s5 s5.state_size=10 s5.blocks=4": ["state_size=10 is not a multiple of", "blocks=4"],
    "feedforward=moe experts.count=4 experts.top_k=5": ["top_k=5 is more than", "count=4"],
    "feedforward=moe experts.top_k=0": ["top_k=0", "greater than 0"],
    "feedforward=mlp expansion=0.01": ["expansion=0.01", "width=16", "no hidden unit"],
    "feedforward=channel-mixing expansion=1e30": ["expansion=1e+30", "less than or equal to 1024"],
    "feedforward=channel-mixing mixers=rwkv embedding_width=8": [
        "of width 8",
        "width=16",
        "set model.embedding_width",
    ],
    "mixers=lstm residual=true embedding_width=8": ["of width 8", "width=16", "a residual"],
    "mixers=mamba positions.kind=learned positions.join=concatenate": ["of width 32", "width=16", "half"],
    "width=15 positions.kind=sinusoidal": ["sinusoidal positions need an even width, not 15"],
    "embedding_width=-1 positions.kind=sinusoidal": ["sinusoidal positions need an even width, not 21"],
    "embedding_norm=true norm=none": ["embedding_norm is not read, since", "set model.norm=layer or rms"],
}


@pytest.mark.parametrize("model", MODELS)
def test_models_whose_parts_do_not_fit(model: str) -> None:
    line = refuse("train", "text.txt", *TINY_MODEL, *(f"model.{setting}" for setting in model.split()))
    for word in MODELS[model]:
        assert word in line


def test_a_model_larger_than_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.api.training.start.build_model", lambda *_: torch.empty(1 << 60))
    line = refuse("train", "text.txt", *TINY_MODEL)
    assert f"not enough memory for {4 << 60} bytes: take a smaller model" in line


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"), " for 2.00 GiB"),
        (MemoryError("Unable to allocate 14.9 GiB for an array with shape (2, 3)"), " for 14.9 GiB"),
        (MemoryError(), ""),
    ],
)
def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("foveal.api.training.start.build_model", full)
    assert f"foveal: not enough memory{told}: take a smaller model" in refuse(
        "train", "text.txt", *TINY_MODEL
    )


IGNORED = {
    "task.label_smoothing=0.1": "task.label_smoothing: the score of a language model is its loss",
    "task.batching=windows task.reset_probability=0.1": (
        "task.reset_probability is not read, since task.batching=windows; set task.batching=streams"
    ),
    "model.encoder.network=lenet-5": "model.encoder.network is not read, since model.encoder.kind=none",
    "--task masked-lm model.encoder.stem=small": "is not read, since model.encoder.kind=text",
    "--task masked-lm task.loss_positions=last": "unknown key 'task.loss_positions'; known: task.name",
}


@pytest.mark.parametrize("given", IGNORED)
def test_settings_that_would_do_nothing(given: str) -> None:
    model = ("--model", "masked-lm") if "masked-lm" in given else TINY_MODEL
    assert IGNORED[given] in refuse("train", "text.txt", *model, *given.split())


LEARNED = ("--model", "attention", "model.positions.kind=learned")


def test_learned_positions_that_end() -> None:
    """Nothing of a text past them is written; by default as much is as there is room for."""
    line = refuse(
        "train", "text.txt", *TINY_MODEL, *LEARNED, "task.batching=streams", "model.attention.window=4"
    )
    assert "so the state can't be carried from chunk to chunk: use task.batching=windows" in line
    learned = Path("apart/learned")
    succeed("train", "text.txt", *TINY_MODEL, *LEARNED, "--budget", "2steps", "--run", learned)
    for given, asked in ((("--tokens", 17), 17), (("--prompt", "the man", "--tokens", 11), 17)):
        for more in ((), ("--json",), ("--beam", 2)):
            line = refuse("generate", learned, *given, *more)
            assert f"learned positions end at 16, but {asked} are needed: use a shorter text" in line
    assert "end at 16, but 19 are needed" in refuse("generate", learned, "--prompt", "the man and the sea")
    for prompt, length in (([], 16), (["--prompt", "the man"], 10)):
        assert f"{length} characters at" in succeed("generate", learned, *prompt).err
    succeed("evaluate", learned, "text.txt")
