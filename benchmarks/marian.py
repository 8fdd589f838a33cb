"""Hugging Face's Marian (a post-norm Transformer, encoder and decoder) with the weights of ours."""

from typing import Any

import torch
from torch import nn

from benchmarks.peers import peer
from foveal.data.text.special_tokens import SpecialTokens
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.tasks.config import from_tables

LONGEST = 256


def ours(
    vocab_size: int, width: int = 256, layers: int = 3, heads: int = 4, dropout: float = 0.0
) -> EncoderWithHead:
    """Vaswani et al. 2017: post-norm, ReLU, sinusoidal positions, one table throughout."""
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
            | {"mixers": "attention+cross", "tie_embeddings": True, "projection_bias": False}
            | {"encoder": stack | {"kind": "text", "mixers": "attention"}},
        }
    ).model
    encoder = text_encoder(model.encoder, vocab_size, LONGEST)
    return EncoderWithHead(encoder, decoder(model, vocab_size, LONGEST, width, encoder.embedding))


def marian(model: EncoderWithHead, marks: SpecialTokens, heads: int = 4, dropout: float = 0.0) -> Any:
    """Marian with the weights of `ours`. Its padding token comes behind our marks; positions are ours."""
    transformers = peer("transformers", "transformers")
    width, layers = model.encoder.width, len(model.encoder.stack.blocks)
    hidden = model.encoder.stack.blocks[0].feedforward.expand.out_features
    config = transformers.MarianConfig(
        vocab_size=marks.vocab_size + 1,
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
        max_position_embeddings=LONGEST,
        scale_embedding=False,
        pad_token_id=marks.vocab_size,
        eos_token_id=marks.eos,
        bos_token_id=marks.bos,
        decoder_start_token_id=marks.bos,
        forced_eos_token_id=None,
        share_encoder_decoder_embeddings=True,
    )
    theirs = transformers.MarianMTModel(config)
    with torch.no_grad():
        body = theirs.model
        body.shared.weight[:-1] = model.encoder.embedding.table
        places = model.encoder.stack.positioned.position(torch.zeros(1, dtype=torch.long), LONGEST)[0].float()
        for side in (body.encoder, body.decoder):
            side.embed_positions.weight.copy_(places)
        for mine, his in zip(model.encoder.stack.blocks, body.encoder.layers, strict=True):
            _attention(mine, his.self_attn, his.self_attn_layer_norm)
            _feedforward(mine, his)
        blocks = list(model.head.stack.blocks)
        for looks, reads, his in zip(blocks[::2], blocks[1::2], body.decoder.layers, strict=True):
            _attention(looks, his.self_attn, his.self_attn_layer_norm)
            _attention(reads, his.encoder_attn, his.encoder_attn_layer_norm)
            _feedforward(reads, his)
    return theirs


def _attention(block: Any, his: Any, norm: nn.LayerNorm) -> None:
    for name, other in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("output", "out_proj")):
        _linear(getattr(block.mixer, name), getattr(his, other))
    _norm(block.mixer_norm, norm)


def _feedforward(block: Any, his: Any) -> None:
    _linear(block.feedforward.expand, his.fc1)
    _linear(block.feedforward.contract, his.fc2)
    _norm(block.feedforward_norm, his.final_layer_norm)


def _linear(mine: nn.Linear, his: nn.Linear) -> None:
    his.weight.copy_(mine.weight)
    his.bias.copy_(mine.bias)


def _norm(mine: Any, his: nn.LayerNorm) -> None:
    his.weight.copy_(mine.gain)
    his.bias.copy_(mine.bias)
