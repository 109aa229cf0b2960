"""Floating-point formats of 16 bits, as functions on the bits of wider ones."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, UInt16

# What carries rounded values: type of its bits, bits of exponent and of mantissa.
CARRIERS: dict[str, tuple[Any, int, int]] = {
    "float32": (jnp.uint32, 8, 23),
    "float64": (jnp.uint64, 11, 52),
}


@dataclass(frozen=True)
class Format:
    """A sign, an exponent and a mantissa in 16 bits, by the rules of IEEE 754.

    Values are carried in float32 or float64, which hold each of them exactly. Rounding is to the
    nearest, of two equally near to the even one. Too large becomes infinite, NaN stays NaN, and
    numbers below the least normal one are rounded to the grid of subnormals.

    Attributes:
        name: as in `FORMATS`.
        exponent_bits: E; the bias is 2^(E−1) − 1.
        mantissa_bits: M, the leading one not counted: rounding loses at most 2^−(M+1) of a value.

    >>> from wse.precision import BFLOAT16
    >>> BFLOAT16.mantissa_bits
    7
    """

    name: str
    exponent_bits: int
    mantissa_bits: int

    @property
    def bytes(self) -> int:
        """Of one value."""
        return (1 + self.exponent_bits + self.mantissa_bits) // 8

    @property
    def bias(self) -> int:
        """What is subtracted from the stored exponent."""
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return (2 - 2.0**-self.mantissa_bits) * 2.0**self.bias

    @property
    def least_normal(self) -> float:
        """The least positive value of full precision."""
        return 2.0 ** (1 - self.bias)

    @property
    def least(self) -> float:
        """The least positive value."""
        return self.least_normal * 2.0**-self.mantissa_bits

    def round(self, values: Inexact[Array, "..."]) -> Inexact[Array, "..."]:
        """Round to the nearest value of the format; shape and type stay.

        A complex number is held as two: its real and its imaginary part are rounded each.

        Raises:
            ValueError: values of another type than float32 and float64, or complex ones of these.
        """
        if jnp.iscomplexobj(values):
            parts: list[Any] = [self._round(x) for x in (jnp.real(values), jnp.imag(values))]
            return jax.lax.complex(*parts)
        return self._round(values)

    # Compiled as a whole: outside of other programs, each operation would be a program of its own.
    @partial(jax.jit, static_argnums=0)
    def _round(self, values: Any) -> Any:
        bits_type, carried_exponent, carried_mantissa = _carrier(values)
        bits = jax.lax.bitcast_convert_type(values, bits_type)
        sign_place = carried_exponent + carried_mantissa
        sign = bits >> sign_place << sign_place
        size = bits ^ sign
        lost = carried_mantissa - self.mantissa_bits
        near = _to_even(size, jnp.asarray(lost, bits_type)) << lost
        offset = 2 ** (carried_exponent - 1) - 1
        if self.exponent_bits < carried_exponent:
            tiny = size < (offset + 1 - self.bias) << carried_mantissa
            near = jnp.where(tiny, self._subnormal(size, values.dtype), near)
        infinite = jnp.asarray((2**carried_exponent - 1) << carried_mantissa, bits_type)
        ceiling = (offset + self.bias + 1) << carried_mantissa
        near = jnp.where(near >= jnp.asarray(ceiling, bits_type), infinite, near)
        near = jnp.where(size > infinite, size, near)
        return jax.lax.bitcast_convert_type(sign | near, values.dtype)

    def _subnormal(self, size: Any, carrier: Any) -> Any:
        """The bits of the nearest multiple of `least`, for values below `least_normal`."""
        bits_type, carried_exponent, carried_mantissa = CARRIERS[str(carrier)]
        offset = 2 ** (carried_exponent - 1) - 1
        exponent = size >> carried_mantissa
        fraction = size & ((1 << carried_mantissa) - 1) | (1 << carried_mantissa)
        lost = carried_mantissa - self.mantissa_bits + (offset + 1 - self.bias) - exponent
        # Two places below the last one all is the same: nothing but a sticky bit.
        lost = jnp.minimum(lost, jnp.asarray(carried_mantissa + 2, bits_type))
        count = _to_even(fraction, lost)
        return jax.lax.bitcast_convert_type(count.astype(carrier) * self.least, bits_type)

    def encode(self, values: Float[Array, "..."]) -> UInt16[Array, "..."]:
        """Round, and return the 16 bits: sign, exponent, mantissa; one quiet NaN."""
        return self._encode(self.round(values))

    @partial(jax.jit, static_argnums=0)
    def _encode(self, near: Any) -> Any:
        bits_type, carried_exponent, carried_mantissa = _carrier(near)
        bits = jax.lax.bitcast_convert_type(near, bits_type)
        sign = bits >> (carried_exponent + carried_mantissa)
        size = bits & ((1 << (carried_exponent + carried_mantissa)) - 1)
        top = (2**self.exponent_bits - 1) << self.mantissa_bits
        lift = (2 ** (carried_exponent - 1) - 1 - self.bias) << self.mantissa_bits
        normal = (size >> (carried_mantissa - self.mantissa_bits)) - lift
        code = normal
        if self.exponent_bits < carried_exponent:
            tiny = jnp.abs(near) < self.least_normal
            count = jnp.where(tiny, jnp.abs(near) / self.least, 0).astype(bits_type)
            code = jnp.where(tiny, count, normal)
        code = jnp.where(jnp.isinf(near), top, code)
        code = jnp.where(jnp.isnan(near), top | 1 << (self.mantissa_bits - 1), code)
        return (code | sign << 15).astype(jnp.uint16)

    def decode(self, codes: UInt16[Array, "..."]) -> Float[Array, "..."]:
        """Return the value of each code, in float32."""
        return self._decode(codes)

    @partial(jax.jit, static_argnums=0)
    def _decode(self, codes: Any) -> Any:
        bits = codes.astype(jnp.uint32)
        sign, size = bits >> 15 << 31, bits & 0x7FFF
        fraction = size & (2**self.mantissa_bits - 1)
        lift = (127 - self.bias) << 23
        found = (size << (23 - self.mantissa_bits)) + lift
        if self.exponent_bits < 8:
            tiny = size < 2**self.mantissa_bits
            small = fraction.astype(jnp.float32) * self.least
            found = jnp.where(tiny, jax.lax.bitcast_convert_type(small, jnp.uint32), found)
        top = size >= (2**self.exponent_bits - 1) << self.mantissa_bits
        found = jnp.where(top, 0x7F800000 | fraction << (23 - self.mantissa_bits), found)
        return jax.lax.bitcast_convert_type(sign | found, jnp.float32)

    def operate(self, operation: Callable[..., Array], *values: Array) -> Float[Array, "..."]:
        """An operation of the format: operands rounded, the result rounded once more.

        Carried in float32 or wider, +, −, ×, ÷ and √ come out as if rounded once: its 24 bits are
        at least 2 (M + 1) + 2. XLA on a processor takes subnormal numbers of the carrier for zero,
        which in float32 touches bfloat16 results below 2^−126, and nothing of the others.
        """
        return self.round(operation(*(self.round(value) for value in values)))


def _to_even(bits: Any, lost: Any) -> Any:
    """Divide bits by 2^lost, to the nearest whole number, of two equally near to the even one."""
    one = jnp.ones((), bits.dtype)
    kept = bits >> lost
    return (bits + (one << (lost - 1)) - one + (kept & one)) >> lost


def _carrier(values: Array) -> tuple[Any, int, int]:
    if str(values.dtype) not in CARRIERS:
        raise ValueError(
            f"values are {values.dtype}; a format is carried in float32 or float64: convert them"
        )
    return CARRIERS[str(values.dtype)]


FLOAT16 = Format("float16", 5, 10)
BFLOAT16 = Format("bfloat16", 8, 7)
# Sourced: docs.cerebras.net, en/1.6.1, general/cs-1-data-formats: 6 bits of exponent, 9 of explicit
# mantissa. Assumed: bias, infinities, NaN and subnormals as in IEEE 754, which its FP16 follows.
CBFLOAT16 = Format("cbfloat16", 6, 9)
FORMATS = {found.name: found for found in (FLOAT16, BFLOAT16, CBFLOAT16)}
