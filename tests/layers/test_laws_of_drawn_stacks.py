"""The laws for any model that a config may describe: hybrid stacks that hypothesis draws."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foveal.config import Config, ModelConfig
from foveal.laws import mixer_laws as laws
from foveal.laws.trial import T, Trial
from foveal.layers.mixers.registry import mixer_specs
from foveal.models.decoder import language_model
from tests.support.mixer_laws import lengths_of_chunks, on_path
from tests.support.mixer_rows import randomize

CONTEXT = 256
SPECS = {name: spec for name, spec in mixer_specs().items() if not spec.reads_memory}
EXAMPLES = 12


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    """Legal ones of 1 to 4 layers; narrow, or as wide as the kernels for one position need."""
    one_of = lambda *options: draw(st.sampled_from(options))  # noqa: E731
    mixers = draw(st.lists(st.sampled_from(list(SPECS)), min_size=1, max_size=4))
    width, residual = one_of(4, 6, 8, 32), one_of(True, False)
    kind, join = one_of("none", "rotary", "learned", "sinusoidal"), one_of("add", "concatenate")
    # The first layer's vectors are as wide as the model, unless it may change the width.
    twice = kind in ("learned", "sinusoidal") and join == "concatenate"
    free = not residual and not SPECS[mixers[0]].same_width
    embedding = one_of(4, 6) if free else width // 2 if twice else width
    if kind == "sinusoidal" and embedding % 2:
        join, embedding = "add", width
    heads = [h for h in (1, 2, 3, 4) if width % h == 0 and (kind != "rotary" or width // h % 2 == 0)]
    blocks, experts = one_of(1, 2), one_of(1, 2, 4)
    return ModelConfig(
        mixers=",".join(mixers),
        layers=max(len(mixers), one_of(1, 2, 3)),
        width=width,
        embedding_width=embedding,
        feedforward=one_of("none", "mlp", "swiglu", "geglu", "highway", "moe", "channel-mixing"),
        expansion=one_of(1.5, 2.0),
        activation=one_of("gelu", "gelu-tanh", "relu"),
        norm=one_of("none", "layer", "rms"),
        norm_placement=one_of("pre", "post", "both"),
        residual=residual,
        attention={
            "heads": one_of(*heads),
            "key_heads": one_of(0, 1),
            "head_width": one_of(0, 6),
            "qk_norm": one_of(True, False),
            "bias": one_of(True, False),
            "window": one_of(0, 1, 2, 5, 40),
            "global_every": one_of(0, 2),
        },
        rnn={"nonlinearity": one_of("tanh", "relu"), "learned_initial_state": one_of(True, False)},
        lstm={"learned_initial_state": one_of(True, False)},
        gru={"reset_after": one_of(False, True), "learned_initial_state": one_of(True, False)},
        conv={"kernel_size": one_of(1, 2, 4), "dilations": one_of("1", "1,2,4", "7")},
        s5={"state_size": blocks * one_of(1, 3), "blocks": blocks},
        mamba={"expand": one_of(1, 2), "state_size": one_of(1, 4), "conv_kernel": one_of(1, 4)},
        experts={"count": experts, "top_k": draw(st.integers(1, experts))},
        positions={"kind": kind, "join": join},
    )


def trial_of(config: ModelConfig, dtype: torch.dtype, tolerance: float) -> Trial:
    """The stack of the model that its user would get, with larger weights."""
    Config(model=config)  # the checks of a config that is read
    torch.manual_seed(0)
    head = language_model(config, vocabulary=5, context=CONTEXT)
    return Trial(
        randomize(head.stack.to(dtype).eval(), (2 / config.width) ** 0.5),
        head.embedding.width,
        dtype,
        tolerance,
        standing_nan="attention" not in config.mixer_names,
        exact=config.feedforward != "moe",
    )


def all_laws(trial: Trial, cuts: list[int], lengths: list[list[int]]) -> None:
    laws.chunks(trial, cuts)
    laws.any_lengths(trial, lengths)
    laws.start_state_is_no_state(trial)
    laws.causality(trial, cuts[0])
    laws.padding_and_batch(trial)
    laws.select_and_reset(trial)
    laws.storage(trial)
    laws.keeps_nothing(trial)
    laws.one_by_one(trial)
    laws.every_parameter_learns(trial)


any_cuts = st.sets(st.integers(1, T - 1), min_size=1, max_size=4).map(sorted)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(configs(), any_cuts, lengths_of_chunks())
def test_the_reference(config: ModelConfig, cuts: list[int], lengths: list[list[int]]) -> None:
    with on_path(reference=True):
        all_laws(trial_of(config, torch.float64, 1e-10), cuts, lengths)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(configs(), any_cuts, lengths_of_chunks(40))
def test_the_default_path(config: ModelConfig, cuts: list[int], lengths: list[list[int]]) -> None:
    """In float32; in float64 where rounding has large consequences.

    It may send a vector to other experts, and without norms layers that multiply make it grow and grow.
    """
    steady = config.feedforward != "moe" and config.norm != "none"
    trial = trial_of(config, *((torch.float32, 1e-4) if steady else (torch.float64, 1e-10)))
    with on_path(reference=False):
        all_laws(trial, cuts, lengths)
