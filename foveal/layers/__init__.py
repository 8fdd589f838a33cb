"""Layers: modules that take plain numbers, one idea per file.

Every layer, cell, mixer, block, encoder and head is a name of this module, such as ``foveal.layers.LSTM``. A
name is imported when it is first used. The examples in the docstrings need `import torch` and `from foveal
import layers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES_BY_MODULE = {
    "foveal.core.memory": ("Memory", "Segment"),
    "foveal.encoders.audio": ("ConvSubsamplingEncoder", "PyramidalLSTMEncoder"),
    "foveal.encoders.conv_series": ("ConvSeriesEncoder",),
    "foveal.encoders.elmo": ("BidirectionalLayers", "ElmoEncoder", "ScalarMix"),
    "foveal.encoders.image": ("ImageEncoder",),
    "foveal.encoders.joint": ("JointEncoder",),
    "foveal.encoders.minirocket": ("MiniRocketEncoder",),
    "foveal.encoders.ngrams": ("NgramEncoder",),
    "foveal.encoders.patches": ("PatchEncoder",),
    "foveal.encoders.series": ("SeriesEncoder",),
    "foveal.encoders.text": ("TextEncoder",),
    "foveal.encoders.video": ("Conv3dBlock", "Conv3dEncoder", "FrameEncoder"),
    "foveal.encoders.words": ("WordEncoder",),
    "foveal.heads.classification": ("ClassificationHead",),
    "foveal.heads.decoder_lm": ("DecoderLM",),
    "foveal.heads.flatten_classification": ("FlattenClassificationHead",),
    "foveal.heads.masked_lm": ("MaskedLMHead",),
    "foveal.heads.norm_classification": ("NormClassificationHead",),
    "foveal.heads.tagging": ("TaggingHead",),
    "foveal.layers.activation": ("ActivationLayer",),
    "foveal.layers.audio.pyramidal_lstm": ("PyramidalLSTM",),
    "foveal.layers.audio.subsampling": ("ConvSubsampling",),
    "foveal.layers.blocks.feedforward": ("MLP", "GeGLU", "Highway", "SwiGLU"),
    "foveal.layers.blocks.mixer_block": ("Block",),
    "foveal.layers.blocks.moe": ("Experts",),
    "foveal.layers.blocks.stack": ("Stack",),
    "foveal.layers.dropout": ("Dropout",),
    "foveal.layers.embedding": ("Embedding", "OneHot", "SegmentVectors"),
    "foveal.layers.linear": ("Linear",),
    "foveal.layers.mixers.attention_rnn": ("AttentionRNN",),
    "foveal.layers.mixers.attention_scores": ("AdditiveScore", "DotProductScore"),
    "foveal.layers.mixers.bidirectional": ("Bidirectional",),
    "foveal.layers.mixers.causal_conv1d": ("CausalConv1d",),
    "foveal.layers.mixers.cross_attention": ("CrossAttention",),
    "foveal.layers.mixers.full_attention": ("FullAttention",),
    "foveal.layers.mixers.mamba": ("Mamba",),
    "foveal.layers.mixers.recurrent": ("Recurrent", "RecurrentCell"),
    "foveal.layers.mixers.recurrent_cells": ("ElmanCell", "GRUCell", "LSTMCell"),
    "foveal.layers.mixers.recurrent_mixers": ("GRU", "LSTM", "RNN"),
    "foveal.layers.mixers.rwkv": ("ChannelMixing", "TimeMixing"),
    "foveal.layers.mixers.s5": ("S5",),
    "foveal.layers.mixers.multi_head_attention": ("HeadOptions",),
    "foveal.layers.mixers.self_attention": ("SelfAttention",),
    "foveal.layers.ngram_lookup": ("NgramLookup",),
    "foveal.layers.norm": ("LayerNorm", "RMSNorm"),
    "foveal.layers.position": ("AddPositions", "LearnedPosition", "SinusoidalPosition"),
    "foveal.layers.series.blocks": ("InceptionModule", "ResidualSeriesBlock"),
    "foveal.layers.series.conv1d": ("SeriesConv", "SeriesConvNormAct", "SeriesNorm"),
    "foveal.layers.vision.attention2d": ("SelfAttention2d",),
    "foveal.layers.vision.conv2d": ("BatchNorm2d", "Conv2d", "Conv2dSame", "ConvNormAct"),
    "foveal.layers.vision.convnext": ("ConvNeXtBlock", "LayerNorm2d"),
    "foveal.layers.vision.handcrafted_features": (
        "ColorHistogram",
        "HistogramOfOrientedGradients",
        "StandardizedFeatures",
    ),
    "foveal.layers.vision.inverted_residual": ("InvertedResidual",),
    "foveal.layers.vision.residual": ("ResidualBlock", "ZeroPaddedShortcut"),
    "foveal.layers.vision.visual_words": ("PatchSimilarities", "VisualWords"),
    "foveal.layers.vision.whitening": ("WhiteningConv2d",),
    "foveal.layers.word_vectors": ("WordVectors",),
}
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

if TYPE_CHECKING:
    from foveal.core.memory import Memory as Memory
    from foveal.core.memory import Segment as Segment
    from foveal.encoders.audio import ConvSubsamplingEncoder as ConvSubsamplingEncoder
    from foveal.encoders.audio import PyramidalLSTMEncoder as PyramidalLSTMEncoder
    from foveal.encoders.conv_series import ConvSeriesEncoder as ConvSeriesEncoder
    from foveal.encoders.elmo import BidirectionalLayers as BidirectionalLayers
    from foveal.encoders.elmo import ElmoEncoder as ElmoEncoder
    from foveal.encoders.elmo import ScalarMix as ScalarMix
    from foveal.encoders.image import ImageEncoder as ImageEncoder
    from foveal.encoders.joint import JointEncoder as JointEncoder
    from foveal.encoders.minirocket import MiniRocketEncoder as MiniRocketEncoder
    from foveal.encoders.ngrams import NgramEncoder as NgramEncoder
    from foveal.encoders.patches import PatchEncoder as PatchEncoder
    from foveal.encoders.series import SeriesEncoder as SeriesEncoder
    from foveal.encoders.text import TextEncoder as TextEncoder
    from foveal.encoders.video import Conv3dBlock as Conv3dBlock
    from foveal.encoders.video import Conv3dEncoder as Conv3dEncoder
    from foveal.encoders.video import FrameEncoder as FrameEncoder
    from foveal.encoders.words import WordEncoder as WordEncoder
    from foveal.heads.classification import ClassificationHead as ClassificationHead
    from foveal.heads.decoder_lm import DecoderLM as DecoderLM
    from foveal.heads.flatten_classification import FlattenClassificationHead as FlattenClassificationHead
    from foveal.heads.masked_lm import MaskedLMHead as MaskedLMHead
    from foveal.heads.norm_classification import NormClassificationHead as NormClassificationHead
    from foveal.heads.tagging import TaggingHead as TaggingHead
    from foveal.layers.activation import ActivationLayer as ActivationLayer
    from foveal.layers.audio.pyramidal_lstm import PyramidalLSTM as PyramidalLSTM
    from foveal.layers.audio.subsampling import ConvSubsampling as ConvSubsampling
    from foveal.layers.blocks.feedforward import MLP as MLP
    from foveal.layers.blocks.feedforward import GeGLU as GeGLU
    from foveal.layers.blocks.feedforward import Highway as Highway
    from foveal.layers.blocks.feedforward import SwiGLU as SwiGLU
    from foveal.layers.blocks.mixer_block import Block as Block
    from foveal.layers.blocks.moe import Experts as Experts
    from foveal.layers.blocks.stack import Stack as Stack
    from foveal.layers.dropout import Dropout as Dropout
    from foveal.layers.embedding import Embedding as Embedding
    from foveal.layers.embedding import OneHot as OneHot
    from foveal.layers.embedding import SegmentVectors as SegmentVectors
    from foveal.layers.linear import Linear as Linear
    from foveal.layers.mixers.attention_rnn import AttentionRNN as AttentionRNN
    from foveal.layers.mixers.attention_scores import AdditiveScore as AdditiveScore
    from foveal.layers.mixers.attention_scores import DotProductScore as DotProductScore
    from foveal.layers.mixers.bidirectional import Bidirectional as Bidirectional
    from foveal.layers.mixers.causal_conv1d import CausalConv1d as CausalConv1d
    from foveal.layers.mixers.cross_attention import CrossAttention as CrossAttention
    from foveal.layers.mixers.full_attention import FullAttention as FullAttention
    from foveal.layers.mixers.mamba import Mamba as Mamba
    from foveal.layers.mixers.multi_head_attention import HeadOptions as HeadOptions
    from foveal.layers.mixers.recurrent import Recurrent as Recurrent
    from foveal.layers.mixers.recurrent import RecurrentCell as RecurrentCell
    from foveal.layers.mixers.recurrent_cells import ElmanCell as ElmanCell
    from foveal.layers.mixers.recurrent_cells import GRUCell as GRUCell
    from foveal.layers.mixers.recurrent_cells import LSTMCell as LSTMCell
    from foveal.layers.mixers.recurrent_mixers import GRU as GRU
    from foveal.layers.mixers.recurrent_mixers import LSTM as LSTM
    from foveal.layers.mixers.recurrent_mixers import RNN as RNN
    from foveal.layers.mixers.rwkv import ChannelMixing as ChannelMixing
    from foveal.layers.mixers.rwkv import TimeMixing as TimeMixing
    from foveal.layers.mixers.s5 import S5 as S5
    from foveal.layers.mixers.self_attention import SelfAttention as SelfAttention
    from foveal.layers.ngram_lookup import NgramLookup as NgramLookup
    from foveal.layers.norm import LayerNorm as LayerNorm
    from foveal.layers.norm import RMSNorm as RMSNorm
    from foveal.layers.position import AddPositions as AddPositions
    from foveal.layers.position import LearnedPosition as LearnedPosition
    from foveal.layers.position import SinusoidalPosition as SinusoidalPosition
    from foveal.layers.series.blocks import InceptionModule as InceptionModule
    from foveal.layers.series.blocks import ResidualSeriesBlock as ResidualSeriesBlock
    from foveal.layers.series.conv1d import SeriesConv as SeriesConv
    from foveal.layers.series.conv1d import SeriesConvNormAct as SeriesConvNormAct
    from foveal.layers.series.conv1d import SeriesNorm as SeriesNorm
    from foveal.layers.vision.attention2d import SelfAttention2d as SelfAttention2d
    from foveal.layers.vision.conv2d import BatchNorm2d as BatchNorm2d
    from foveal.layers.vision.conv2d import Conv2d as Conv2d
    from foveal.layers.vision.conv2d import Conv2dSame as Conv2dSame
    from foveal.layers.vision.conv2d import ConvNormAct as ConvNormAct
    from foveal.layers.vision.convnext import ConvNeXtBlock as ConvNeXtBlock
    from foveal.layers.vision.convnext import LayerNorm2d as LayerNorm2d
    from foveal.layers.vision.handcrafted_features import ColorHistogram as ColorHistogram
    from foveal.layers.vision.handcrafted_features import (
        HistogramOfOrientedGradients as HistogramOfOrientedGradients,
    )
    from foveal.layers.vision.handcrafted_features import StandardizedFeatures as StandardizedFeatures
    from foveal.layers.vision.inverted_residual import InvertedResidual as InvertedResidual
    from foveal.layers.vision.residual import ResidualBlock as ResidualBlock
    from foveal.layers.vision.residual import ZeroPaddedShortcut as ZeroPaddedShortcut
    from foveal.layers.vision.visual_words import PatchSimilarities as PatchSimilarities
    from foveal.layers.vision.visual_words import VisualWords as VisualWords
    from foveal.layers.vision.whitening import WhiteningConv2d as WhiteningConv2d
    from foveal.layers.word_vectors import WordVectors as WordVectors


def __dir__() -> list[str]:
    return sorted(_MODULES)


def __getattr__(name: str) -> Any:
    # One layer must not pull in all others, and `foveal.encoders` imports from here.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'foveal.layers' has no attribute {name!r}")
