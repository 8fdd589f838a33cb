"""What one process counts of encoders with decoders, masked language models and image classifiers."""

import pytest

from benchmarks.plan_memory import predicted_and_measured
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.planned_model import sized_task
from foveal.studies.plan.rank_step import RankStep, count_step
from foveal.tasks.config import load_config
from foveal.tasks.configure import network_config
from foveal.tasks.registry import task_of

LAYERS, WIDTH, LENGTH, ROWS, VOCABULARY = 2, 32, 16, 3, 61
TOKENS = VOCABULARY + 3
"""With the special tokens."""
FORWARD_AND_BACKWARD, OF_ATTENTION = 3, 3.5
"""Over the forward pass. The kernel of attention computes the weights again."""


def counted(preset: str, *settings: str) -> RankStep:
    stacks = {"translation": ("model", "model.encoder"), "masked-lm": ("model.encoder",)}[preset]
    sizes = ["expansion=4", f"layers={LAYERS}", f"width={WIDTH}", "attention.heads=2"]
    common = [f"{stack}.{size}" for stack in stacks for size in sizes]
    common += ["optimizer.name=adamw", "training.precision=float32", f"data.max_length={LENGTH}"]
    config = load_config(preset, [*common, *settings])
    return count_step(sized_task(task_of(config), {"vocabulary": VOCABULARY}), Layout(), ROWS)


def test_operations_of_an_encoder_with_a_decoder():
    """A layer of a decoder has four more projections, and attends twice (Vaswani et al. 2017)."""
    step = counted("translation", "model.cross.heads=2")
    weights = LAYERS * (12 + 16) * WIDTH**2 + TOKENS * WIDTH
    attention = 3 * LAYERS * 4 * LENGTH * WIDTH
    assert step.tokens == ROWS * LENGTH
    assert step.flops_per_token == FORWARD_AND_BACKWARD * 2 * weights + OF_ATTENTION * attention


def test_operations_of_a_masked_language_model():
    """The head computes the hidden tokens alone: two or three of each row."""
    step = counted("masked-lm", f"data.context_length={LENGTH}")
    head, hidden = WIDTH**2 + TOKENS * WIDTH, round(0.15 * ROWS * LENGTH) / (ROWS * LENGTH)
    products = 2 * (LAYERS * 12 * WIDTH**2 + hidden * head)
    attention = LAYERS * 4 * LENGTH * WIDTH
    assert step.flops_per_token == pytest.approx(FORWARD_AND_BACKWARD * products + OF_ATTENTION * attention)


@pytest.mark.parametrize(
    ("network", "products"), [("resnet-18", 1_814_073_344), ("resnet-50", 4_089_184_256)]
)
def test_operations_of_residual_networks(network, products):
    """He et al. 2015, table 1: 1.8 and 3.8 billion multiplications; with the stride in the 3x3 convolution of
    a bottleneck, as we have it, 4.1 billion."""
    task = sized_task(task_of(network_config(network)), {})
    first = 112**2 * 64 * 3 * 7**2  # has no gradient of its input
    step = count_step(task, Layout(), 1)
    assert step.flops_per_token == 2 * (FORWARD_AND_BACKWARD * products - first)
    assert step.positions == 0


def test_blocks_of_both_stacks_are_computed_again():
    plain = counted("translation", "model.cross.heads=2")
    again = counted("translation", "model.cross.heads=2", "training.activation_checkpointing=true")
    assert again.flops_per_token == plain.flops_per_token
    assert again.recomputed_flops > plain.flops / 5


@pytest.mark.slow
@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        ("translation", ("data.batch_tokens=4096", "data.max_length=128")),
        ("masked-lm", ("data.batch_tokens=2048",)),
        ("vit", ("data.image.batch_size=32",)),
        ("image-classification", ("data.image.batch_size=32",)),
        (
            "image-classification",
            ["data.image.batch_size=8", "data.image.size=96", "model.encoder.network=resnet-50"],
        ),
    ],
)
def test_one_process_holds_what_is_planned(preset, settings, micro_batches):
    planned, measured = predicted_and_measured(Layout(micro_batches=micro_batches), tuple(settings), preset)
    assert planned == pytest.approx(measured, rel=0.1)
