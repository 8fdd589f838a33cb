"""Karpathy's min-char-rnn in NumPy."""

from typing import Any

import numpy as np


def min_char_rnn(data: list[int], weights: list[np.ndarray], steps: int) -> list[float]:
    """Return the losses of Karpathy's algorithm: chunks of 25, Adagrad, every gradient clipped to 5.

    The hidden state is carried from chunk to chunk, but the gradient is not. The losses of a chunk are
    summed.
    """
    Wxh, Whh, Why, bh, by = (weight.copy() for weight in weights)
    memory = [np.zeros_like(weight) for weight in weights]
    before = np.zeros_like(bh)
    losses = []
    for start in range(0, 25 * steps, 25):
        inputs, targets = data[start : start + 25], data[start + 1 : start + 26]
        hs, ps, loss = {-1: before}, {}, 0.0
        for t, (character, target) in enumerate(zip(inputs, targets, strict=True)):
            hs[t] = np.tanh(Wxh[:, character] + Whh @ hs[t - 1] + bh)
            scores = np.exp(Why @ hs[t] + by)
            ps[t] = scores / scores.sum()
            loss -= np.log(ps[t][target])
        losses.append(float(loss))
        gradients = dWxh, dWhh, dWhy, dbh, dby = [np.zeros_like(weight) for weight in weights]
        dh = np.zeros_like(bh)
        for t in reversed(range(25)):
            dy = ps[t].copy()
            dy[targets[t]] -= 1
            dWhy += np.outer(dy, hs[t])
            dby += dy
            draw = (1 - hs[t] ** 2) * (Why.T @ dy + dh)
            dbh += draw
            dWxh[:, inputs[t]] += draw
            dWhh += np.outer(draw, hs[t - 1])
            dh = Whh.T @ draw
        for weight, gradient, squares in zip((Wxh, Whh, Why, bh, by), gradients, memory, strict=True):
            clipped = gradient.clip(-5, 5)
            squares += clipped**2
            weight -= 0.1 * clipped / np.sqrt(squares + 1e-8)
        before = hs[24]
    return losses


def min_char_weights(model: Any) -> list[np.ndarray]:
    cell: Any
    cell, output = model.stack.blocks[0].mixer.cell, model.projection
    weights = (cell.weight_input, cell.weight_hidden, output.weight, cell.bias, output.bias)
    return [weight.detach().numpy().copy() for weight in weights]
