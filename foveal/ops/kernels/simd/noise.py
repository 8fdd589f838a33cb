"""Random numbers generated where they are used."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from foveal.ops.kernels.simd.lanes import INT, INTS, LANES, WORD, broadcast_ir, constant, lanes


@intrinsic
def dropout_mask(context: Any, seed: Any, index: Any, dropped: Any) -> Any:
    """Return 0 with probability `dropped / 2^24`, else 1, for each of the 16 indices from `index` on.

    The noise is the upper bits of a hash of the seed and the index: two rounds of lowbias32 (Ellis 2018),
    each with half of the seed.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        seed, index, dropped = values
        lower, upper = _integers(builder, seed), _integers(builder, builder.lshr(seed, ir.Constant(WORD, 32)))
        indices = builder.add(_integers(builder, index), ir.Constant(INTS, list(range(LANES))))
        noise = _hashed(builder, builder.xor(_hashed(builder, builder.add(indices, lower)), upper))
        kept = builder.icmp_unsigned(">=", _shifted(builder, noise, 8), _integers(builder, dropped))
        return builder.select(kept, constant(1.0), constant(0.0))

    return lanes(types.int64, types.int64, types.int64), code


def _integers(builder: Any, value: Any) -> Any:
    """Return a vector with the lower half of an int64 in all 16 elements."""
    return broadcast_ir(builder, builder.trunc(value, INT))


def _shifted(builder: Any, value: Any, bits: int) -> Any:
    """Return the vector shifted right by `bits`."""
    return builder.lshr(value, ir.Constant(INTS, [bits] * LANES))


def _hashed(builder: Any, value: Any) -> Any:
    """Return a hash of each element (lowbias32)."""
    for bits, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        value = builder.xor(value, _shifted(builder, value, bits))
        value = builder.mul(value, ir.Constant(INTS, [factor] * LANES))
    return builder.xor(value, _shifted(builder, value, 16))
