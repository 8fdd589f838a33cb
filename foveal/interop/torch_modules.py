"""Modules of torch.nn to stacks of ours and back: RNN, LSTM, GRU, and TransformerEncoder as a causal model.

Dropout is a setting of training and no weight: it is left out in both directions.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.recurrent import GRU, LSTM, Elman, Recurrent, RecurrentCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.norm import LayerNorm
from foveal.ops.activation import ACTIVATIONS

TORCH_ACTIVATIONS = ACTIVATIONS | {"gelu": F.gelu}

DIRECTION_SUFFIXES = ("", "_reverse")
"""How the names of parameters end, by direction."""


def from_torch_rnn(module: nn.RNN | nn.LSTM | nn.GRU) -> Stack:
    """The stack that computes what `module` does, one block a layer, of one direction or of both; it takes
    (B, T, D).

    torch adds two biases, b_ih + b_hh, where one is enough: ours is their sum, but for the GRU's b_hn, which
    stands inside the reset gate's product. Gates lie in torch's order (LSTM: i, f, g, o; GRU: r, z, n).
    Errors: UserError for an LSTM's projection.
    """
    if module.proj_size:
        raise UserError("proj_size is not ours: give a module without")
    blocks: list[nn.Module] = []
    for layer in range(module.num_layers):
        there, back = (f"l{layer}{way}" for way in DIRECTION_SUFFIXES)
        mixer: nn.Module = _from_direction(module, there)
        blocks.append(
            Block(Bidirectional(mixer, _from_direction(module, back)) if module.bidirectional else mixer)
        )
    return Stack(blocks)


def to_torch_rnn(stack: Stack) -> nn.RNN | nn.LSTM | nn.GRU:
    """The inverse of `from_torch_rnn`, with `batch_first`; all second biases are zero but the GRU's b_hn.

    Errors: UserError for what torch's modules have not: norms, residuals, feed-forward layers, positions,
    different cells or widths, a learned start, a GRU that resets before the product, a sum of directions.
    """
    layers = [_plain_cells(block) for block in stack.blocks]
    cells = [cell for layer in layers for cell in layer]
    kinds = {(type(cell), cell.d_out, len(layer)) for layer in layers for cell in layer}
    if stack.positioned is not None or len(kinds) > 1:
        raise UserError("torch's layers are of one kind and one width, without positions; these are not")
    first, both = cells[0], len(layers[0]) == 2
    shape = {"input_size": first.d_in, "hidden_size": first.d_out, "num_layers": len(layers)}
    shape |= {"bidirectional": both, "batch_first": True}
    module: nn.RNN | nn.LSTM | nn.GRU
    if isinstance(first, Elman):
        if len({cell.relu for cell in cells if isinstance(cell, Elman)}) > 1:
            raise UserError("torch's layers have one nonlinearity; these have two")
        module = nn.RNN(**shape, nonlinearity="relu" if first.relu else "tanh")
    else:
        module = (nn.LSTM if isinstance(first, LSTM) else nn.GRU)(**shape)
    module.to(first.get_parameter("bias"))
    with torch.no_grad():
        for number, layer in enumerate(layers):
            for cell, way in zip(layer, DIRECTION_SUFFIXES, strict=False):
                _to_direction(cell, module, f"l{number}{way}")
    return module


def from_torch_transformer(encoder: nn.TransformerEncoder) -> tuple[Stack, LayerNorm | None]:
    """The stack that computes what `encoder` does under a causal mask, and its last norm if it has one.

    Biases that the encoder does without are zero. Errors: UserError for an activation that is not ours.
    """
    norm = None if encoder.norm is None else _from_norm(encoder.norm)
    return Stack([_from_layer(layer) for layer in encoder.layers]), norm


def to_torch_transformer(stack: Stack, norm: LayerNorm | None = None) -> nn.TransformerEncoder:
    """The inverse, with `batch_first`: call it with a causal mask
    (`nn.Transformer.generate_square_subsequent_mask(T)`).

    Errors: UserError for what torch's encoder has not: windows, rotary or absolute positions, other mixers,
    norms or feed-forward layers, no residual.
    """
    if stack.positioned is not None:
        raise UserError("torch's encoder has no positions: add them before it, and give a stack without")
    layers = [_to_layer(block) for block in stack.blocks]
    last = None if norm is None else _to_norm(norm)
    encoder = nn.TransformerEncoder(layers[0], len(layers), last, enable_nested_tensor=False)
    encoder.layers = nn.ModuleList(layers)
    return encoder


def _from_direction(module: nn.RNNBase, place: str) -> Recurrent:
    """Of the layer and direction that its parameters' names end in."""
    W_x, W_h = module.get_parameter(f"weight_ih_{place}"), module.get_parameter(f"weight_hh_{place}")
    cell = _make_cell(module, W_x.shape[1]).to(W_x)
    with torch.no_grad():
        cell.get_parameter("weight_input").copy_(W_x)
        cell.get_parameter("weight_hidden").copy_(W_h)
        cell.get_parameter("bias").zero_()
        if module.bias:
            biases = (module.get_parameter(f"bias_{side}_{place}") for side in ("ih", "hh"))
            _merge_biases(cell, *biases)
    return Recurrent(cell)


def _to_direction(cell: Elman | LSTM | GRU, module: nn.RNNBase, place: str) -> None:
    for theirs, ours in (("weight_ih", "weight_input"), ("weight_hh", "weight_hidden"), ("bias_ih", "bias")):
        module.get_parameter(f"{theirs}_{place}").copy_(cell.get_parameter(ours))
    second = module.get_parameter(f"bias_hh_{place}").zero_()
    if isinstance(cell, GRU) and cell.bias_new is not None:
        second[2 * cell.width :] = cell.bias_new


def _make_cell(module: nn.RNNBase, d_in: int) -> RecurrentCell:
    if isinstance(module, nn.LSTM):
        return LSTM(d_in, module.hidden_size)
    if isinstance(module, nn.GRU):
        return GRU(d_in, module.hidden_size, reset_after=True)
    return Elman(d_in, module.hidden_size, "relu" if module.mode == "RNN_RELU" else "tanh")


def _merge_biases(cell: RecurrentCell, b_x: Tensor, b_h: Tensor) -> None:
    bias = cell.get_parameter("bias").copy_(b_x)
    if isinstance(cell, GRU):
        gates = 2 * cell.width
        bias[:gates] += b_h[:gates]
        cell.get_parameter("bias_new").copy_(b_h[gates:])
    else:
        bias += b_h


def _plain_cells(block: nn.Module) -> list[Elman | LSTM | GRU]:
    """One, or one for each direction."""
    plain = isinstance(block, Block) and block.feedforward is None and not block.residual
    if not plain or not isinstance(block.mixer_norm, nn.Identity):
        raise UserError("torch's layers are bare cells: without norm, residual and feed-forward layer")
    if isinstance(block.mixer, Bidirectional) and block.mixer.join == "concatenate":
        return [_plain_cell(block.mixer.there), _plain_cell(block.mixer.back)]
    return [_plain_cell(block.mixer)]


def _plain_cell(mixer: object) -> Elman | LSTM | GRU:
    if not isinstance(mixer, Recurrent):
        raise UserError("torch's layers are bare cells, of one direction or two beside each other")
    cell = mixer.cell
    if not isinstance(cell, Elman | LSTM | GRU) or any(start.any() for start in mixer.start.values()):
        raise UserError("torch has the cells rnn, lstm and gru, each from a start of zeros")
    if isinstance(cell, GRU) and cell.bias_new is None:
        raise UserError("torch's GRU resets after the recurrent product, this one before: not the same cell")
    return cell


def _from_layer(layer: nn.Module) -> Block:
    assert isinstance(layer, nn.TransformerEncoderLayer)
    theirs, width = layer.self_attn, layer.self_attn.embed_dim
    names = [name for name, function in TORCH_ACTIVATIONS.items() if function is layer.activation]
    if not names:
        raise UserError(f"activation {layer.activation}: ours has {', '.join(ACTIVATIONS)}")
    mixer = SelfAttention(width, theirs.num_heads)
    feedforward = MLP(width, layer.linear1.out_features, names[0])
    block = Block(mixer, feedforward, "layer", "pre" if layer.norm_first else "post", residual=True)
    block.to(theirs.in_proj_weight)
    biases = [None] * 3 if theirs.in_proj_bias is None else theirs.in_proj_bias.chunk(3)
    parts = (mixer.query, mixer.key, mixer.value)
    for part, weight, bias in zip(parts, theirs.in_proj_weight.chunk(3), biases, strict=True):
        _copy_linear(part, weight, bias)
    for ours, other in (
        (mixer.output, theirs.out_proj),
        (feedforward.expand, layer.linear1),
        (feedforward.contract, layer.linear2),
    ):
        _copy_linear(ours, other.weight, other.bias)
    block.mixer_norm, block.feedforward_norm = _from_norm(layer.norm1), _from_norm(layer.norm2)
    return block


def _to_layer(block: nn.Module) -> nn.TransformerEncoderLayer:
    mixer = block.mixer if isinstance(block, Block) else None
    if not isinstance(block, Block) or not isinstance(mixer, SelfAttention) or mixer.window or mixer.rotary:
        raise UserError("torch's encoder is of self-attention without window and rotary positions")
    feedforward, norms = block.feedforward, (block.mixer_norm, block.feedforward_norm)
    if not isinstance(feedforward, MLP) or not isinstance(norms[0], LayerNorm) or not block.residual:
        raise UserError("torch's encoder has LayerNorm, residuals and an MLP in each layer")
    layer = nn.TransformerEncoderLayer(
        mixer.width,
        mixer.heads,
        feedforward.expand.out_features,
        dropout=0.0,
        activation=TORCH_ACTIVATIONS[feedforward.activation],
        batch_first=True,
        norm_first=block.pre,
    ).to(mixer.query.weight)
    parts = (mixer.query, mixer.key, mixer.value)
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        layer.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    _copy_linear(layer.self_attn.out_proj, mixer.output.weight, mixer.output.bias)
    _copy_linear(layer.linear1, feedforward.expand.weight, feedforward.expand.bias)
    _copy_linear(layer.linear2, feedforward.contract.weight, feedforward.contract.bias)
    layer.norm1, layer.norm2 = map(_to_norm, norms)
    return layer


@torch.no_grad()
def _copy_linear(linear: nn.Linear, weight: Tensor, bias: Tensor | None) -> None:
    linear.weight.copy_(weight)
    linear.bias.copy_(torch.zeros_like(linear.bias) if bias is None else bias)


@torch.no_grad()
def _from_norm(norm: nn.Module) -> LayerNorm:
    if not isinstance(norm, nn.LayerNorm) or not norm.elementwise_affine:
        raise UserError(f"{type(norm).__name__}: only nn.LayerNorm with its weight is ours too")
    ours = LayerNorm(len(norm.weight), norm.eps).to(norm.weight)
    ours.gain.copy_(norm.weight)
    ours.bias.copy_(torch.zeros_like(ours.bias) if norm.bias is None else norm.bias)
    return ours


@torch.no_grad()
def _to_norm(norm: nn.Module | None) -> nn.LayerNorm:
    assert isinstance(norm, LayerNorm)
    theirs = nn.LayerNorm(len(norm.gain), norm.epsilon).to(norm.gain)
    theirs.weight.copy_(norm.gain)
    theirs.bias.copy_(norm.bias)
    return theirs
