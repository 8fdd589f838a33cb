"""Hugging Face's Marian, a post-norm Transformer with encoder and decoder, with the weights of our model."""

from typing import Any

import torch
from torch import nn

from benchmarks.peers import peer
from foveal.data.text.special_tokens import SpecialTokens
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.tasks.config import from_tables

MAX_LENGTH = 256


def ours(
    vocab_size: int, width: int = 256, layers: int = 3, heads: int = 4, dropout: float = 0.0
) -> EncoderWithHead:
    """Return the Transformer of Vaswani et al. 2017: post-norm, ReLU, sinusoidal positions, one embedding."""
    stack = {
        "layers": layers,
        "width": width,
        "feedforward": "mlp",
        "activation": "relu",
        "norm": "layer",
        "norm_placement": "post",
        "residual": True,
        "dropout": dropout,
        "attention": {"heads": heads},
        "positions": {"kind": "sinusoidal"},
    }
    model = from_tables(
        {
            "data": {"shared_vocabulary": True},
            "task": {"name": "translation"},
            "model": stack
            | {"mixers": "attention+cross", "cross": {"heads": heads}}
            | {"tie_embeddings": True, "projection_bias": False}
            | {"encoder": stack | {"kind": "text", "mixers": "attention"}},
        }
    ).model
    encoder = text_encoder(model.encoder, vocab_size, MAX_LENGTH)
    return EncoderWithHead(encoder, decoder(model, vocab_size, MAX_LENGTH, width, encoder.embedding))


def marian(model: EncoderWithHead, tokens: SpecialTokens, heads: int = 4, dropout: float = 0.0) -> Any:
    """Return Marian with the weights and positions of `ours`. The padding token has the next free id."""
    transformers = peer("transformers", "transformers")
    width, layers = model.encoder.width, len(model.encoder.stack.blocks)
    hidden = model.encoder.stack.blocks[0].feedforward.expand.out_features
    config = transformers.MarianConfig(
        vocab_size=tokens.vocab_size + 1,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
        activation_function="relu",
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        max_position_embeddings=MAX_LENGTH,
        scale_embedding=False,
        pad_token_id=tokens.vocab_size,
        eos_token_id=tokens.eos,
        bos_token_id=tokens.bos,
        decoder_start_token_id=tokens.bos,
        forced_eos_token_id=None,
        share_encoder_decoder_embeddings=True,
    )
    theirs = transformers.MarianMTModel(config)
    with torch.no_grad():
        body = theirs.model
        body.shared.weight[:-1] = model.encoder.embedding.table
        positions = model.encoder.stack.positioned.position(torch.zeros(1, dtype=torch.long), MAX_LENGTH)[
            0
        ].float()
        for side in (body.encoder, body.decoder):
            side.embed_positions.weight.copy_(positions)
        for our_block, their_layer in zip(model.encoder.stack.blocks, body.encoder.layers, strict=True):
            _copy_attention(our_block, their_layer.self_attn, their_layer.self_attn_layer_norm)
            _copy_feedforward(our_block, their_layer)
        blocks = list(model.head.stack.blocks)
        for self_block, cross_block, their_layer in zip(
            blocks[::2], blocks[1::2], body.decoder.layers, strict=True
        ):
            _copy_attention(self_block, their_layer.self_attn, their_layer.self_attn_layer_norm)
            _copy_attention(cross_block, their_layer.encoder_attn, their_layer.encoder_attn_layer_norm)
            _copy_feedforward(cross_block, their_layer)
    return theirs


def _copy_attention(block: Any, theirs: Any, norm: nn.LayerNorm) -> None:
    for name, other in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("output", "out_proj")):
        _copy_linear(getattr(block.mixer, name), getattr(theirs, other))
    _copy_norm(block.mixer_norm, norm)


def _copy_feedforward(block: Any, theirs: Any) -> None:
    _copy_linear(block.feedforward.expand, theirs.fc1)
    _copy_linear(block.feedforward.contract, theirs.fc2)
    _copy_norm(block.feedforward_norm, theirs.final_layer_norm)


def _copy_linear(ours: nn.Linear, theirs: nn.Linear) -> None:
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


def _copy_norm(ours: Any, theirs: nn.LayerNorm) -> None:
    theirs.weight.copy_(ours.gain)
    theirs.bias.copy_(ours.bias)
