"""Half precision against NumPy, ml_dtypes and a reference in whole numbers, bit by bit."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wse.precision import BFLOAT16, CBFLOAT16, FLOAT16, FORMATS

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{kind}")
    for kind in ("overflow", "invalid", "divide", "underflow")
]
CODES = np.arange(2**16, dtype=np.uint16)
KNOWN = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def value_of(code: int) -> Fraction | float:
    """The value of a cbfloat16 code, from its definition: 1, 6 and 9 bits, bias 31."""
    sign, exponent, mantissa = code >> 15, code >> 9 & 63, code & 511
    if exponent == 63:
        return float("nan") if mantissa else float("-inf" if sign else "inf")
    whole = mantissa if exponent == 0 else 512 + mantissa
    size = whole * Fraction(2) ** (max(exponent, 1) - 31 - 9)
    return -size if sign else size


FINITE = [value_of(code) for code in range(63 << 9)]  # by code: they rise with it


def nearest(value: Fraction, negative: bool) -> int:
    """The cbfloat16 code nearest to an exact value, found by bisection; ties to even codes."""
    size, low, high = abs(value), 0, len(FINITE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if FINITE[middle] <= size else (low, middle)
    above = FINITE[low + 1] if low + 1 < len(FINITE) else Fraction(2) ** 32
    distance = (size - FINITE[low]) - (above - size)
    code = low if distance < 0 or (distance == 0 and low % 2 == 0) else low + 1
    return code | negative << 15


def bits(half, values):
    return np.asarray(jax.jit(half.encode)(jnp.asarray(values)))


def values_of(half, codes):
    return np.asarray(jax.jit(half.decode)(jnp.asarray(codes)))


def round_to(half, values):
    return np.asarray(jax.jit(half.round)(jnp.asarray(values)))


def same(found, wanted):
    """Equal by bits; one NaN is as good as another."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    both = np.isnan(found.astype("f8")) & np.isnan(wanted.astype("f8"))
    width = {2: np.uint16, 4: np.uint32, 8: np.uint64}[found.dtype.itemsize]
    assert found.dtype == wanted.dtype
    assert ((found.view(width) == wanted.view(width)) | both).all()


@pytest.mark.parametrize("name", KNOWN)
def test_every_code_has_the_known_value_and_returns(name):
    half, known = FORMATS[name], CODES.view(KNOWN[name])
    values = values_of(half, CODES)
    with np.errstate(invalid="ignore"):
        same(values, known.astype(np.float32))
    back = bits(half, values)
    is_nan = np.isnan(known.astype(np.float32))
    assert (back[~is_nan] == CODES[~is_nan]).all()
    assert np.isnan(back[is_nan].view(KNOWN[name]).astype(np.float32)).all()


def test_every_code_of_cbfloat16_has_the_defined_value_and_returns():
    values = values_of(CBFLOAT16, CODES)
    defined = np.array([float(value_of(code)) for code in CODES.tolist()], np.float32)
    same(values, np.where(CODES == 1 << 15, np.float32(-0.0), defined))
    is_nan = np.isnan(values)
    assert (bits(CBFLOAT16, values)[~is_nan] == CODES[~is_nan]).all()
    assert is_nan.sum() == 2 * 511
    assert (np.diff(values[: (63 << 9) + 1]) > 0).all()


def hard(half, count: int, seed: int) -> np.ndarray:
    """Values of all sizes, ties between two neighbours, borders, specials, in float32."""
    draw = np.random.default_rng(seed)
    any_bits = draw.integers(0, 2**32, count, np.uint32).view(np.float32)
    grid = values_of(half, draw.integers(0, 2**16, count, np.uint16))
    finite = grid[np.isfinite(grid) & (np.abs(grid) < half.largest)]
    up = values_of(half, bits(half, finite) + np.uint16(1))
    ties = (finite.astype("f8") + up.astype("f8")) / 2
    near = [np.nextafter(ties.astype("f4"), np.float32(side)) for side in (-np.inf, np.inf)]
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, half.least, half.least / 2, half.least * 0.75]
    edges += [half.largest, half.least_normal, half.least_normal - half.least, 1e-45, -3e38]
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([any_bits, grid, ties.astype("f4"), *near, np.array(edges, "f4")])


@pytest.mark.parametrize("name", KNOWN)
def test_rounding_is_that_of_the_known_format(name):
    half, values = FORMATS[name], hard(FORMATS[name], 200_000, 0)
    known = values.astype(KNOWN[name])
    same(round_to(half, values), known.astype(np.float32))
    same(bits(half, values).view(KNOWN[name]), known)
    with jax.enable_x64(True):
        # NumPy rounds float64 once; ml_dtypes goes through float32 and would round twice.
        wide = values.astype(np.float64) * (1 + 2.0**-40 * (name == "float16"))
        same(round_to(half, wide), wide.astype(KNOWN[name]).astype("f8"))


def exact(values) -> list[int]:
    """Codes of cbfloat16 by the reference."""
    found = []
    for value in np.asarray(values, np.float64).tolist():
        if np.isnan(value):
            found.append(63 << 9 | 256 | int(np.signbit(value)) << 15)
        elif np.isinf(value):
            found.append(63 << 9 | (value < 0) << 15)
        else:
            found.append(nearest(Fraction(value), bool(np.signbit(value))))
    return found


GRID = np.array([*map(float, FINITE), 2.0**32])  # the last one stands for infinity
BORDERS = (GRID[1:] + GRID[:-1]) / 2  # exact: of ten bits and one


def tabled(values) -> np.ndarray:
    """Values in float64 rounded to cbfloat16 by its table; ties to even places in it."""
    size = np.abs(values)
    code = np.searchsorted(BORDERS, size)  # on a border: the place below
    tie = BORDERS[np.minimum(code, len(BORDERS) - 1)] == size
    near = np.append(GRID[:-1], np.inf)[np.minimum(code + tie * (code % 2), len(BORDERS))]
    return np.copysign(np.where(np.isnan(values), np.nan, near), values)


def test_the_table_rounds_as_fractions_do():
    values = hard(CBFLOAT16, 500, 3).astype(np.float64)
    same(
        tabled(values).astype(np.float32), values_of(CBFLOAT16, np.array(exact(values), np.uint16))
    )


def test_rounding_to_cbfloat16_is_that_of_the_definition():
    values = hard(CBFLOAT16, 800, 1)
    assert bits(CBFLOAT16, values).tolist() == exact(values)
    many = hard(CBFLOAT16, 200_000, 2)
    same(round_to(CBFLOAT16, many), values_of(CBFLOAT16, bits(CBFLOAT16, many)))
    same(round_to(CBFLOAT16, many), tabled(many.astype(np.float64)).astype(np.float32))


OPERATIONS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}


def pairs(half, count: int):
    """Random codes, and every pair of special values."""
    draw = np.random.default_rng(2)
    top = (2**half.exponent_bits - 1) << half.mantissa_bits
    one = half.bias << half.mantissa_bits
    special = [0, 1, top - 1, top, top | 1, one, one + 1, 1 << half.mantissa_bits]
    special = np.array([*special, *(code | 1 << 15 for code in special)], np.uint16)
    sides = np.meshgrid(special, special)
    return [np.concatenate([draw.integers(0, 2**16, count, np.uint16), s.ravel()]) for s in sides]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", KNOWN)
def test_operations_on_a_million_pairs_are_those_of_the_known_format(name, operation):
    half, known = FORMATS[name], KNOWN[name]
    a, b = pairs(half, 10**6)
    wanted = OPERATIONS[operation](a.view(known), b.view(known))
    with jax.enable_x64(name == "bfloat16"):  # its subnormals are those of float32 too
        carrier = jnp.float64 if name == "bfloat16" else jnp.float32
        run = jax.jit(lambda *x: half.operate(getattr(jnp, operation), *x))
        found = run(*(jnp.asarray(values_of(half, x), carrier) for x in (a, b)))
        same(np.asarray(found).astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_of_cbfloat16_are_those_of_the_definition(operation):
    """On a million pairs by the table of all values, on some and the special ones by fractions."""
    a, b = pairs(CBFLOAT16, 10**6)
    left, right = (values_of(CBFLOAT16, x) for x in (a, b))
    run = jax.jit(lambda *x: CBFLOAT16.operate(getattr(jnp, operation), *x))
    found = np.asarray(run(jnp.asarray(left), jnp.asarray(right)))
    # From 53 bits, rounding a result of 10-bit numbers once more changes nothing.
    wide = OPERATIONS[operation](left.astype(np.float64), right.astype(np.float64))
    same(found, tabled(wide).astype(np.float32))
    with jax.enable_x64(True):
        same(found, round_to(CBFLOAT16, wide).astype(np.float32))
    few = np.r_[0:400, len(a) - 256 : len(a)]
    both = np.isfinite(left) & np.isfinite(right) & ((right != 0) | (operation != "divide"))
    chosen = [i for i in few if both[i]]
    signs = np.signbit(wide)
    wanted = []
    for i in chosen:
        x, y = Fraction(float(left[i])), Fraction(float(right[i]))
        result = {"add": x + y, "subtract": x - y, "multiply": x * y}.get(operation)
        result = x / y if result is None else result
        wanted.append(nearest(result, bool(signs[i])))
    assert bits(CBFLOAT16, found[chosen]).tolist() == wanted


def test_limits_are_those_of_the_known_formats():
    for name, known in KNOWN.items():
        limits = ml_dtypes.finfo(known)
        half = FORMATS[name]
        assert half.largest == float(limits.max)
        assert half.least_normal == float(limits.smallest_normal)
        assert half.least == float(limits.smallest_subnormal)
        assert half.bytes == 2
    assert CBFLOAT16.largest == 2.0**32 - 2.0**22
    assert (CBFLOAT16.least_normal, CBFLOAT16.least) == (2.0**-30, 2.0**-39)
    # "Double the dynamic range" of its maker: twice as many powers of two.
    assert CBFLOAT16.bias + 1 == 2 * (FLOAT16.bias + 1)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([FLOAT16, BFLOAT16, CBFLOAT16]), st.floats(width=32), st.floats(width=32))
def test_rounding_is_idempotent_odd_and_monotone(half, x, y):
    a, b = (float(half.round(jnp.float32(v))) for v in (x, y))
    assert np.isnan(x) == np.isnan(a)
    same(half.round(jnp.float32(a)), np.float32(a))
    same(half.round(jnp.float32(-x)), np.float32(-a))
    if not np.isnan(x) and half.least_normal <= abs(x) <= half.largest:
        assert abs(a - x) <= abs(x) * 2.0 ** -(half.mantissa_bits + 1)
    if x <= y:
        assert a <= b


@pytest.mark.usefixtures("untyped")
def test_other_types_are_refused():
    with pytest.raises(ValueError, match="values are float16"):
        FLOAT16.round(jnp.ones(3, jnp.float16))
