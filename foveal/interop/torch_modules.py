"""Conversion between torch.nn modules and Foveal's stacks: RNN, LSTM, GRU, causal TransformerEncoder.

Both directions ignore dropout, which is a setting of training.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.recurrent import Recurrent, RecurrentCell
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.norm import LayerNorm
from foveal.ops.activation import ACTIVATIONS

TORCH_ACTIVATIONS = ACTIVATIONS | {"gelu": F.gelu}

DIRECTION_SUFFIXES = ("", "_reverse")
"""The endings of parameter names for the forward and the backward direction."""


def from_torch_rnn(module: nn.RNN | nn.LSTM | nn.GRU) -> Stack:
    """Return a stack that computes the same as `module`, with one block for each layer, for inputs (B, T, D).

    PyTorch has two biases, b_ih and b_hh. Foveal has their sum, except for the GRU's b_hn, which is
    multiplied by the reset gate. Gates are in PyTorch's order (LSTM: i, f, g, o; GRU: r, z, n).

    Raises: UserError: the module is an LSTM with a projection.
    """
    if module.proj_size:
        raise UserError("Foveal has no proj_size: give a module without proj_size")
    blocks: list[nn.Module] = []
    for layer in range(module.num_layers):
        forward, backward = (f"l{layer}{suffix}" for suffix in DIRECTION_SUFFIXES)
        mixer: nn.Module = _from_direction(module, forward)
        blocks.append(
            Block(Bidirectional(mixer, _from_direction(module, backward)) if module.bidirectional else mixer)
        )
    return Stack(blocks)


def to_torch_rnn(stack: Stack) -> nn.RNN | nn.LSTM | nn.GRU:
    """Return the PyTorch module of a stack, with `batch_first`: the inverse of `from_torch_rnn`.

    All second biases are zero, except for the GRU's b_hn.

    Raises: UserError: PyTorch's modules lack a part of the stack (norms, residuals, feed-forward layers,
        positions, different cells or widths, learned initial states, a GRU that resets before the product, a
        sum of directions).
    """
    layers = [_plain_cells(block) for block in stack.blocks]
    cells = [cell for layer in layers for cell in layer]
    shapes = {(type(cell), cell.d_out, len(layer)) for layer in layers for cell in layer}
    if stack.positioned is not None or len(shapes) > 1:
        raise UserError(
            "torch's layers all have the same cell and width, and no positions, unlike this stack"
        )
    first, bidirectional = cells[0], len(layers[0]) == 2
    shape = {"input_size": first.d_in, "hidden_size": first.d_out, "num_layers": len(layers)}
    shape |= {"bidirectional": bidirectional, "batch_first": True}
    module: nn.RNN | nn.LSTM | nn.GRU
    if isinstance(first, ElmanCell):
        if len({cell.relu for cell in cells if isinstance(cell, ElmanCell)}) > 1:
            raise UserError("torch's layers all have the same nonlinearity, and these layers have two")
        module = nn.RNN(**shape, nonlinearity="relu" if first.relu else "tanh")
    else:
        module = (nn.LSTM if isinstance(first, LSTMCell) else nn.GRU)(**shape)
    module.to(first.get_parameter("bias"))
    with torch.no_grad():
        for number, layer in enumerate(layers):
            for cell, suffix in zip(layer, DIRECTION_SUFFIXES, strict=False):
                _to_direction(cell, module, f"l{number}{suffix}")
    return module


def from_torch_transformer(encoder: nn.TransformerEncoder) -> tuple[Stack, LayerNorm | None]:
    """Return a stack that computes the same as `encoder` with a causal mask, including the final norm if
    there is one.

    Biases that the encoder lacks are zero.

    Raises: UserError: Foveal lacks the activation function.
    """
    norm = None if encoder.norm is None else _from_norm(encoder.norm)
    return Stack([_from_layer(layer) for layer in encoder.layers]), norm


def to_torch_transformer(stack: Stack, norm: LayerNorm | None = None) -> nn.TransformerEncoder:
    """Return the PyTorch module of a stack, with `batch_first`: the inverse of `from_torch_transformer`.

    Call the module with a causal mask (`nn.Transformer.generate_square_subsequent_mask(T)`).

    Raises: UserError: PyTorch's encoder lacks a part of the stack (windows, rotary or absolute positions,
        other mixers, norms or feed-forward layers, blocks without residuals).
    """
    if stack.positioned is not None:
        raise UserError(
            "torch's encoder has no positions: add positions to its input, and give a stack without positions"
        )
    layers = [_to_layer(block) for block in stack.blocks]
    last = None if norm is None else _to_norm(norm)
    encoder = nn.TransformerEncoder(layers[0], len(layers), last, enable_nested_tensor=False)
    encoder.layers = nn.ModuleList(layers)
    return encoder


def _from_direction(module: nn.RNNBase, suffix: str) -> Recurrent:
    """Return the cell of the layer and direction whose parameter names end in `suffix`."""
    W_x, W_h = module.get_parameter(f"weight_ih_{suffix}"), module.get_parameter(f"weight_hh_{suffix}")
    cell = _make_cell(module, W_x.shape[1]).to(W_x)
    with torch.no_grad():
        cell.get_parameter("weight_input").copy_(W_x)
        cell.get_parameter("weight_hidden").copy_(W_h)
        cell.get_parameter("bias").zero_()
        if module.bias:
            biases = (module.get_parameter(f"bias_{side}_{suffix}") for side in ("ih", "hh"))
            _merge_biases(cell, *biases)
    return Recurrent(cell)


def _to_direction(cell: ElmanCell | LSTMCell | GRUCell, module: nn.RNNBase, suffix: str) -> None:
    """Fill the parameters whose names end in `suffix` from a cell."""
    names = {"weight_ih": "weight_input", "weight_hh": "weight_hidden", "bias_ih": "bias"}
    for torch_name, name in names.items():
        module.get_parameter(f"{torch_name}_{suffix}").copy_(cell.get_parameter(name))
    second = module.get_parameter(f"bias_hh_{suffix}").zero_()
    if isinstance(cell, GRUCell) and cell.bias_new is not None:
        second[2 * cell.width :] = cell.bias_new


def _make_cell(module: nn.RNNBase, d_in: int) -> RecurrentCell:
    if isinstance(module, nn.LSTM):
        return LSTMCell(d_in, module.hidden_size)
    if isinstance(module, nn.GRU):
        return GRUCell(d_in, module.hidden_size, reset_after=True)
    return ElmanCell(d_in, module.hidden_size, "relu" if module.mode == "RNN_RELU" else "tanh")


def _merge_biases(cell: RecurrentCell, b_x: Tensor, b_h: Tensor) -> None:
    """Fill the bias of a cell with the sum of both biases. The GRU keeps the second bias of the new gate
    separate."""
    bias = cell.get_parameter("bias").copy_(b_x)
    if isinstance(cell, GRUCell):
        gates = 2 * cell.width
        bias[:gates] += b_h[:gates]
        cell.get_parameter("bias_new").copy_(b_h[gates:])
    else:
        bias += b_h


def _plain_cells(block: nn.Module) -> list[ElmanCell | LSTMCell | GRUCell]:
    """Return the cell of a block, or the cells of its two directions.

    Raises: UserError: the block has other parts.
    """
    plain = isinstance(block, Block) and block.feedforward is None and not block.residual
    if not plain or not isinstance(block.mixer_norm, nn.Identity):
        raise UserError(
            "torch's layers are single cells: without norm, residual connection and feed-forward layer"
        )
    if isinstance(block.mixer, Bidirectional) and block.mixer.join == "concatenate":
        return [_plain_cell(block.mixer.there), _plain_cell(block.mixer.back)]
    return [_plain_cell(block.mixer)]


def _plain_cell(mixer: object) -> ElmanCell | LSTMCell | GRUCell:
    if not isinstance(mixer, Recurrent):
        raise UserError(
            "torch's layers are single cells, in one direction or in two directions with concatenated outputs"
        )
    cell = mixer.cell
    if not isinstance(cell, ElmanCell | LSTMCell | GRUCell) or any(
        start.any() for start in mixer.start.values()
    ):
        raise UserError("torch has the cells rnn, lstm and gru, each with an initial state of zeros")
    if isinstance(cell, GRUCell) and cell.bias_new is None:
        raise UserError("torch's GRU resets after the recurrent product, and this GRU resets before it")
    return cell


def _from_layer(layer: nn.Module) -> Block:
    assert isinstance(layer, nn.TransformerEncoderLayer)
    attention, width = layer.self_attn, layer.self_attn.embed_dim
    names = [name for name, function in TORCH_ACTIVATIONS.items() if function is layer.activation]
    if not names:
        raise UserError(f"activation {layer.activation}: Foveal has {', '.join(ACTIVATIONS)}")
    mixer = SelfAttention(width, attention.num_heads)
    feedforward = MLP(width, layer.linear1.out_features, names[0])
    block = Block(mixer, feedforward, "layer", "pre" if layer.norm_first else "post", residual=True)
    block.to(attention.in_proj_weight)
    biases = [None] * 3 if attention.in_proj_bias is None else attention.in_proj_bias.chunk(3)
    projections = (mixer.query, mixer.key, mixer.value)
    for projection, weight, bias in zip(projections, attention.in_proj_weight.chunk(3), biases, strict=True):
        _copy_linear(projection, weight, bias)
    for target, source in (
        (mixer.output, attention.out_proj),
        (feedforward.expand, layer.linear1),
        (feedforward.contract, layer.linear2),
    ):
        _copy_linear(target, source.weight, source.bias)
    block.mixer_norm, block.feedforward_norm = _from_norm(layer.norm1), _from_norm(layer.norm2)
    return block


def _to_layer(block: nn.Module) -> nn.TransformerEncoderLayer:
    mixer = block.mixer if isinstance(block, Block) else None
    if not isinstance(block, Block) or not isinstance(mixer, SelfAttention) or mixer.window or mixer.rotary:
        raise UserError("torch's encoder has only self-attention, without windows and rotary positions")
    if not mixer.options.are_published:
        raise UserError("torch's encoder has heads of one kind, with biases and without norms")
    if block.mixer_output_norm is not None:
        raise UserError("torch's encoder has its norms before its layers or behind them, not both")
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
    projections = (mixer.query, mixer.key, mixer.value)
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
        layer.self_attn.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
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
        raise UserError(f"{type(norm).__name__}: only nn.LayerNorm with a weight can be converted")
    converted = LayerNorm(len(norm.weight), norm.eps).to(norm.weight)
    converted.gain.copy_(norm.weight)
    converted.bias.copy_(torch.zeros_like(converted.bias) if norm.bias is None else norm.bias)
    return converted


@torch.no_grad()
def _to_norm(norm: nn.Module | None) -> nn.LayerNorm:
    assert isinstance(norm, LayerNorm)
    converted = nn.LayerNorm(len(norm.gain), norm.epsilon).to(norm.gain)
    converted.weight.copy_(norm.gain)
    converted.bias.copy_(norm.bias)
    return converted
