"""Every encoder with every head: shapes, independent rows, and padding without effect."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.length_limit import LengthLimit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.encoders.elmo import ElmoEncoder
from foveal.encoders.image import ImageEncoder
from foveal.encoders.video import Conv3dEncoder, FrameEncoder
from foveal.heads.classification import ClassificationHead
from foveal.heads.tagging import TaggingHead
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.layers.vision.attention2d import SelfAttention2d
from foveal.layers.vision.conv2d import ConvNormAct
from foveal.layers.vision.convnext import ConvNeXtBlock
from foveal.layers.vision.handcrafted_features import HistogramOfOrientedGradients, StandardizedFeatures
from foveal.layers.vision.inverted_residual import InvertedResidual
from foveal.layers.vision.residual import ResidualBlock, basic_block
from foveal.layers.vision.visual_words import VisualWords
from foveal.models.decoder import decoder
from foveal.models.encoder import (
    EncoderMixerFactory,
    EncoderWithHead,
    audio_encoder,
    patch_encoder,
    series_encoder,
    text_encoder,
    word_encoder,
)
from foveal.models.encoders.text import bidirectional_layers
from foveal.models.series_networks import InceptionTime, SeriesNetwork, SeriesResNet
from foveal.models.stack import make_stack
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.objectives.tagging import TaggingObjective
from foveal.ops.padding import sequence_mask
from foveal.tasks.config import from_tables
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

WIDTH, WORDS, CHANNELS, CLASSES, LONGEST, SIDE, FRAME = 8, 6, 5, 3, 9, 12, 4
FORMS = 3
AROUND = {"norm": "layer", "residual": True, "feedforward": "mlp"}
SMALL: dict[str, Any] = {
    "width": WIDTH,
    "layers": 2,
    "attention": {"heads": 2},
    "cross": {"heads": 2},
    "s5": {"state_size": 4, "blocks": 2},
    "mamba": {"state_size": 4},
}
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": {"mixers": "attention", "positions": {"kind": "sinusoidal"}, **AROUND},
    "post-norm": {
        "mixers": "attention",
        "positions": {"kind": "learned"},
        **AROUND,
        "norm_placement": "post",
    },
    "rotary": {"mixers": "attention", "positions": {"kind": "rotary"}, **AROUND},
    "rnn": {"mixers": "rnn", "pooling": "last"},
    "bi-lstm": {"mixers": "lstm", "bidirectional": True, "pooling": "final-states"},
    "bi-gru": {"mixers": "gru", "bidirectional": True, "pooling": "final-states"},
    "conv": {"mixers": "conv", **AROUND},
    "bi-s5": {"mixers": "s5", "bidirectional": True, **AROUND, "s5": {"state_size": 4, "blocks": 1}},
    "bi-mamba": {"mixers": "mamba", "bidirectional": True, **AROUND},
    "rwkv": {"mixers": "rwkv", "norm": "layer", "residual": True, "feedforward": "channel-mixing"},
    "hybrid": {"mixers": "lstm,attention", "bidirectional": True, **AROUND},
    "experts": {"mixers": "attention", **AROUND, "feedforward": "moe"},
    "elmo": {"mixers": "lstm", "residual": True},
    "words": {"mixers": "lstm", "bidirectional": True, "pooling": "final-states", "word_dropout": 0.0},
    "series": {"mixers": "gru", "bidirectional": True, "pooling": "final-states"},
    "resnet-1d": {},
    "inception-time": {},
    "frames": {"mixers": "attention", "positions": {"kind": "sinusoidal"}, **AROUND},
    "conv3d": {},
    "patches": {"mixers": "attention", "positions": {"kind": "learned"}, **AROUND},
    "class token": {
        "mixers": "attention",
        "positions": {"kind": "learned"},
        **AROUND,
        "pooling": "cls",
    },
    "convolutions": {},
    "filters": {},
    "grid attention": {},
    "edges": {},
    "visual words": {},
    "pyramid": {},
    "sound": {"mixers": "attention", "positions": {"kind": "sinusoidal"}, **AROUND},
}
IMAGES = ("patches", "class token", "convolutions", "filters", "grid attention", "edges", "visual words")
DECODERS: dict[str, dict[str, Any]] = {
    "transformer": {"mixers": "attention+cross", "positions": {"kind": "sinusoidal"}, **AROUND},
    "post-norm": {
        "mixers": "attention+cross",
        "positions": {"kind": "learned"},
        **AROUND,
        "norm_placement": "post",
    },
    "mamba": {"mixers": "mamba+cross", **AROUND},
    "lstm, then attention": {"mixers": "lstm+cross"},
    **{
        f"{cell} {score}": {
            "mixers": "attention-rnn",
            "layers": 1,
            "attention_rnn": {"cell": cell, "score": score},
        }
        for cell, score in (
            ("rnn", "additive"),
            ("gru", "initial-state"),
            ("gru", "every-step"),
            ("gru", "additive"),
            ("gru", "dot"),
            ("lstm", "scaled-dot"),
            ("lstm", "general"),
            ("lstm", "every-step"),
        )
    },
}
POOLINGS = ("mean", "last", "max", "attention", "encoder")
HEADS = [*DECODERS, *(f"classify {pooling}" for pooling in POOLINGS), "tag"]
SOUNDS = {"pyramid": "pyramid", "sound": "convolution"}
NETWORKS_1D: dict[str, SeriesNetwork] = {
    "resnet-1d": SeriesResNet((WIDTH, WIDTH), (4, 3)),
    "inception-time": InceptionTime(3, 2, 3, (4, 3, 2)),
}
"""The networks of series, of few channels."""
VECTORS = ("series", *NETWORKS_1D, *SOUNDS)
FEW = ("edges", "visual words", "pyramid", "sound")
"""Memories of fewer places than are tagged: of 1, of 4, and a fourth of the source's."""
PAIRS = [(encoder, head) for encoder in ENCODERS for head in HEADS if head != "tag" or encoder not in FEW]
OF_A_KIND = (
    ("transformer", "post-norm", "mamba"),
    ("rnn additive", "gru additive", "gru dot", "lstm scaled-dot", "lstm general"),
    ("gru initial-state", "gru every-step", "lstm every-step"),
    tuple(f"classify {pooling}" for pooling in POOLINGS),
    ("tag",),
)
SOME = {(encoder, kind[place % len(kind)]) for place, encoder in enumerate(ENCODERS) for kind in OF_A_KIND}
SOME.add(("bi-gru", "lstm, then attention"))
"""Every encoder with each kind of head; all pairs take minutes (`pytest -m slow`)."""
FORGETFUL = ("edges", "lstm, then attention")
"""It can't learn: of one place there is nothing to choose, and no residual passes on what was written."""


def config_of(encoder: str, head: str) -> Config:
    model = SMALL | DECODERS.get(head, {}) | {"encoder": SMALL | {"kind": "text"} | ENCODERS[encoder]}
    names = {"c": "text-classification", "t": "tagging"}
    name = names.get(head[0], "translation") if head not in DECODERS else "translation"
    return from_tables({"model": model, "task": {"name": name}})


def made(encoder: str, head: str, seed: int = 0) -> Any:
    """The task, its model in float64."""
    torch.manual_seed(seed)
    config, marks = config_of(encoder, head), SpecialTokens(WORDS)
    if encoder == "series":
        reader: Any = series_encoder(config.model.encoder, CHANNELS, LONGEST)
    elif encoder == "elmo":
        reader = ElmoEncoder(bidirectional_layers(config.model.encoder, marks.vocab_size))
    elif encoder == "words":
        reader = word_encoder(config.model.encoder, FORMS, [3] * (WORDS - 1), WORDS, LONGEST)
    elif encoder in NETWORKS_1D:
        reader = NETWORKS_1D[encoder].make_encoder(CHANNELS, config.model.encoder)
    elif encoder in SOUNDS:
        reader = audio_encoder(config.model.encoder.model_copy(update={"kind": SOUNDS[encoder]}), CHANNELS)
    elif encoder == "frames":
        network = ImageEncoder([ConvNormAct(CHANNELS, WIDTH, 3, 2)], WIDTH)
        stack = make_stack(EncoderMixerFactory(config.model.encoder), WIDTH, LONGEST)
        reader = FrameEncoder(network, WIDTH * FRAME * FRAME // 4, stack, WIDTH)
    elif encoder == "conv3d":
        reader = Conv3dEncoder(CHANNELS, WIDTH, 2, FRAME)
    elif encoder in ("patches", "class token"):
        reader = patch_encoder(config.model.encoder, CHANNELS, SIDE)
    elif encoder in ("edges", "visual words"):
        feature = (
            HistogramOfOrientedGradients(WIDTH)
            if encoder == "edges"
            else VisualWords(CHANNELS, WIDTH, side=4)
        )
        reader = ImageEncoder([StandardizedFeatures(feature, WIDTH)], WIDTH)
    elif encoder in IMAGES:
        reader = ImageEncoder([ConvNormAct(CHANNELS, WIDTH, 3, 2), *blocks_of(encoder)], WIDTH)
    else:
        reader = text_encoder(config.model.encoder, marks.vocab_size, LONGEST)
    if head in DECODERS:
        writer = decoder(config.model, marks.vocab_size, LONGEST, reader.width)
        return SequenceToSequenceObjective(
            EncoderWithHead(reader, writer).double(), marks, LengthLimit(LONGEST)
        )
    if head == "tag":
        return TaggingObjective(
            EncoderWithHead(reader, TaggingHead(reader.width, CLASSES)).double(), ("a", "b", "c")
        )
    pooling: Any = head.split()[1]
    classes = ClassificationHead(reader.width, CLASSES, pooling)
    return ClassificationObjective(EncoderWithHead(reader, classes).double(), ("a", "b", "c"))


def blocks_of(encoder: str) -> list[nn.Module]:
    """Behind a first convolution, over a grid of 6x6."""
    if encoder == "convolutions":
        return [ResidualBlock(basic_block(WIDTH, WIDTH, 2), WIDTH, WIDTH, 2, "projection")]
    if encoder == "filters":
        return [ConvNeXtBlock(WIDTH), InvertedResidual(WIDTH, WIDTH, 3, 2, expansion=2)]
    attention = SelfAttention2d(WIDTH)
    nn.init.ones_(attention.gamma)
    return [attention, ConvNormAct(WIDTH, WIDTH, 3, 2)]


def batch_of(encoder: str = "", rows: int = 4, dtype: torch.dtype = torch.float64) -> ExampleBatch:
    """Ragged sources, and every column that some task asks for."""
    torch.manual_seed(1)
    sources, targets = torch.tensor([5, 6, 7, 1])[:rows], torch.tensor([2, 6, 4, 1])[:rows]
    columns = {
        "source": torch.randint(WORDS, (rows, int(sources.max()))).where(sequence_mask(sources, 7), 0),
        "target": torch.randint(CLASSES, (rows, int(targets.max()))).where(sequence_mask(targets, 6), 0),
        "label": torch.arange(rows) % CLASSES,
    }
    if encoder == "words":
        words = torch.randint(WORDS, (*columns["source"].shape, FORMS + 4))
        columns["source"] = words.where(sequence_mask(sources, 7)[:, :, None], 0)
    if encoder in VECTORS:
        steps = torch.randn(*columns["source"].shape, CHANNELS, dtype=dtype)
        columns["source"] = steps.where(sequence_mask(sources, 7)[:, :, None], 0)
    if encoder in ("frames", "conv3d"):
        frames = torch.randn(*columns["source"].shape, CHANNELS, FRAME, FRAME, dtype=dtype)
        columns["source"] = frames.where(sequence_mask(sources, 7)[:, :, None, None, None], 0)
    if encoder in IMAGES:
        columns["source"] = torch.randn(rows, CHANNELS, SIDE, SIDE, dtype=dtype)
    columns["places"] = torch.arange(int(targets.max())).expand(rows, -1).where(sequence_mask(targets, 6), 0)
    lengths = {"source": sources, "target": targets, "places": targets}
    if columns["source"].dim() == 4:
        del lengths["source"]  # images are whole
    return ExampleBatch(torch.arange(rows), columns, lengths, targets)


def alone(batch: ExampleBatch, row: int) -> ExampleBatch:
    """One row, cut to its own lengths."""
    columns = {name: column[row : row + 1] for name, column in batch.columns.items()}
    lengths = {name: length[row : row + 1] for name, length in batch.lengths.items()}
    columns |= {name: columns[name][:, : int(length)] for name, length in lengths.items()}
    return ExampleBatch(batch.rows[row : row + 1], columns, lengths, lengths["target"])


def loss_of(objective: Any, batch: ExampleBatch) -> Tensor:
    result: ObjectiveOutput = objective(batch, None)[0]
    return result.terms["loss"].sum


@pytest.mark.parametrize(("encoder", "head"), PAIRS)
def test_laws(encoder: str, head: str) -> None:
    """Batch: the loss is the sum of the rows' own. Padding: what lies there changes no loss, no gradient."""
    task, batch = made(encoder, head), batch_of(encoder)
    task.model.eval()
    loss = loss_of(task, batch)
    rows = torch.stack([loss_of(task, alone(batch, row)) for row in range(4)])
    torch.testing.assert_close(rows.sum(), loss, rtol=1e-9, atol=1e-9)
    parameters = dict(task.model.named_parameters())
    gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    dirty = batch_of(encoder)
    for name in {"source", "target"} & dirty.lengths.keys():
        padding = ~sequence_mask(dirty.lengths[name], dirty.columns[name].shape[1])
        dirty.columns[name][padding] = 1
    again = loss_of(task, dirty)
    assert torch.equal(again, loss)
    others = torch.autograd.grad(again, list(parameters.values()), allow_unused=True)
    unused: set[str] = set()
    for name, one, other in zip(parameters, gradients, others, strict=True):
        if one is None:
            unused.add(name)
            continue
        assert one.isfinite().all(), name
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    assert not {name for name in unused if "experts" not in name}


@pytest.mark.parametrize(
    ("encoder", "head"),
    [
        pair if pair in SOME else pytest.param(*pair, marks=pytest.mark.slow)
        for pair in PAIRS
        if pair != FORGETFUL
    ],
)
def test_learns(encoder: str, head: str) -> None:
    """A batch is overfitted from at least one of three initializations."""
    batch = batch_of(encoder, dtype=torch.float32)
    lowest = []
    for seed, (rate, steps) in enumerate(((3e-2, 100), (1e-2, 300), (1e-2, 600))):
        lowest.append(learned(encoder, head, seed, batch, rate, steps))
        if lowest[-1] < 0.25:
            return
    pytest.fail(f"shares of the first loss that are left: {lowest}")


def learned(encoder: str, head: str, seed: int, batch: ExampleBatch, lr: float, steps: int) -> float:
    """The least share of the first loss that is left, of at most so many `steps`."""
    task = made(encoder, head, seed)
    nn.Module.float(task.model)
    reader = task.model.encoder
    if isinstance(reader, ImageEncoder) and isinstance(reader.blocks[0], DataDependentInit):
        reader.blocks[0].fit(batch.columns["source"])
    optimizer = Optimizer(task.model, from_tables({"optimizer": {"name": "adam"}}).optimizer)
    losses: list[float] = []
    while len(losses) < steps and (not losses or losses[-1] > 0.25 * losses[0]):
        step = (0, len(losses))
        losses.append(train_step(task.model, task, optimizer, [batch], [None], lr=lr, seed=step)[0].loss)
    return min(losses) / losses[0]


@pytest.mark.parametrize("head", DECODERS)
def test_written_alone_as_in_a_batch(head: str) -> None:
    """Beam search over ragged memories finds what each row alone finds; a beam of 1 is greedy."""
    task, batch = made("bi-gru", head), batch_of()
    task.model.eval()
    found = task.beam_decode(batch, beam=3, best=2, alpha=1.0)
    for row in range(4):
        (single,) = task.beam_decode(alone(batch, row), beam=3, best=2, alpha=1.0)
        assert [one.tokens for one in single] == [one.tokens for one in found[row]]


def test_attention_is_shown_exactly() -> None:
    """Weights of every head of every layer; each target token's sum to 1 over the source."""
    for head, heads in (("transformer", ["1.1", "1.2", "2.1", "2.2"]), ("gru additive", ["1.1"])):
        task, batch = made("bi-gru", head), batch_of()
        task.model.eval()
        written = [[1], [0, 2, 1], [3], [2, 2]]
        names, shown = task.attention_maps(batch, written)
        assert names == heads
        for weights, tokens, length in zip(shown, written, batch.lengths["source"].tolist(), strict=True):
            assert weights.shape == (len(heads), len(tokens), length)
            assert abs(weights.sum(2) - 1).max() < 1e-5


def test_a_summary_has_nothing_to_show() -> None:
    task = made("bi-gru", "gru every-step")
    with pytest.raises(UserError, match="no attention to show"):
        task.attention_maps(batch_of(), [[1]] * 4)
