"""ATen's factorizations and equations of matrices as JAX: QR, Cholesky, triangles, eigenvalues."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special
from jax.scipy.linalg import expm, lu_solve

from wse.models.pytorch.table import Table, named


def qr(x: Any, mode: str = "reduced") -> Any:
    """Q and R; of a matrix with more columns than rows R goes on behind its square."""
    rows, columns = x.shape[-2:]
    if mode == "r":
        return jnp.zeros((0,), x.dtype), jnp.linalg.qr(x, mode="r")
    if rows < columns:
        q, r = jnp.linalg.qr(x[..., :rows])
        return q, jnp.concatenate([r, jnp.swapaxes(q, -1, -2) @ x[..., rows:]], axis=-1)
    return tuple(jnp.linalg.qr(x, mode=mode if rows > columns else "reduced"))


def mirrored(x: Any, upper: bool = False) -> Any:
    """A matrix of one triangle alone; its gradient goes to both, in halves, as in PyTorch."""
    half = jnp.triu(x) if upper else jnp.tril(x)
    strict = jnp.triu(x, 1) if upper else jnp.tril(x, -1)
    mean = (x + jnp.swapaxes(x, -1, -2)) / 2
    return mean + jax.lax.stop_gradient(half + jnp.swapaxes(strict, -1, -2) - mean)


def cholesky(x: Any, upper: bool = False, check_errors: bool = False) -> Any:
    """The triangle whose square is x, and whether there is none."""
    del check_errors
    low = jax.lax.linalg.cholesky(mirrored(x, upper), symmetrize_input=False)
    none = jnp.any(jnp.isnan(low), axis=(-2, -1)).astype(jnp.int32)
    return (jnp.swapaxes(low, -1, -2) if upper else low), none


def triangle(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """X of a x = b, or of x a = b, where a is one triangle."""
    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    return jax.lax.linalg.triangular_solve(
        a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular
    )


def triangle_old(
    b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The same by its older name, and the matrix."""
    turned, way = (jnp.swapaxes(a, -1, -2), not upper) if transpose else (a, upper)
    return triangle(turned, b, upper=way, unitriangular=unitriangular), a


def cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    """X of a x = b, of the triangle whose square is a."""
    low = jnp.swapaxes(factor, -1, -2) if upper else factor
    half = triangle(low, b, upper=False)
    return triangle(jnp.swapaxes(low, -1, -2), half, upper=True)


def cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    """The inverse of the square of a triangle."""
    return cholesky_solve(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor, upper)


def solve(a: Any, b: Any, left: bool = True, check_errors: bool = False) -> Any:
    """X of a x = b, or of x a = b; its factors are not given."""
    del check_errors
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        return jnp.linalg.solve(a, b[..., None])[..., 0], None, None, _fine(a)
    if left:
        return jnp.linalg.solve(a, b), None, None, _fine(a)
    turned = jnp.linalg.solve(jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2))
    return jnp.swapaxes(turned, -1, -2), None, None, _fine(a)


def _fine(a: Any) -> Any:
    """That nothing failed: where it did, numbers are none."""
    return jnp.zeros(a.shape[:-2], jnp.int32)


def factor(a: Any, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one, the rows that were exchanged, and that nothing failed.

    Raises:
        ValueError: no rows may be exchanged.
    """
    del check_errors
    if not pivot:
        raise ValueError("lu_factor is called with pivot=False; rows must be exchanged: leave it")
    both, rows, _ = jax.lax.linalg.lu(a)
    return both, rows + 1, _fine(a)


def factor_solve(both: Any, rows: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    """X of a x = b, of the factors of a.

    Raises:
        ValueError: a stands on the right.
    """
    if not left:
        raise ValueError("lu_solve is called with left=False: transpose both sides, and the result")
    return lu_solve((both, rows - 1), b, trans=2 if adjoint else 0)


def eigen(x: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    """Eigenvalues of a symmetric matrix, and its vectors, whose signs are LAPACK's."""
    whole = mirrored(x, uplo == "U")
    if not compute_v:
        return jnp.linalg.eigvalsh(whole), None
    return tuple(jnp.linalg.eigh(whole))


def singular(x: Any, full_matrices: bool = False, compute_uv: bool = True, **_: Any) -> Any:
    """U, singular values, and V^T, whose signs are LAPACK's."""
    if not compute_uv:
        return None, jnp.linalg.svd(x, compute_uv=False), None
    whole = full_matrices and x.shape[-1] != x.shape[-2]
    return tuple(jnp.linalg.svd(x, full_matrices=whole))


def inverse_of_any(x: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """The pseudo-inverse.

    Raises:
        ValueError: a bound that does not grow with the largest singular value.
    """
    if atol is not None:
        raise ValueError("pinv is called with atol; the bound must be relative: pass rtol")
    least = jnp.finfo(x.dtype).eps * max(x.shape[-2:]) if rtol is None else rtol
    return jnp.linalg.pinv(x, rtol=least, hermitian=hermitian)


MATRICES: Table = {
    "linalg_qr": qr,
    "linalg_cholesky_ex": cholesky,
    "cholesky": lambda x, upper=False: cholesky(x, upper)[0],
    **named(cholesky_solve, cholesky_inverse),
    "linalg_solve_triangular": triangle,
    "triangular_solve": triangle_old,
    "_linalg_solve_ex": solve,
    "linalg_inv_ex": lambda x, *_: (jnp.linalg.inv(x), _fine(x)),
    "_linalg_det": lambda x: (jnp.linalg.det(x), None, None),
    "_linalg_slogdet": lambda x: (*jnp.linalg.slogdet(x), None, None),
    "linalg_lu_factor_ex": factor,
    "linalg_lu_solve": factor_solve,
    "_linalg_eigh": eigen,
    "_linalg_svd": singular,
    "linalg_matrix_exp": expm,
    "linalg_pinv": inverse_of_any,
    "logcumsumexp": lambda x, dim: jax.lax.cumlogsumexp(x, axis=dim % x.ndim),
    **{name: getattr(special, name.removeprefix("special_")) for name in (
        "i0", "special_i0e", "special_i1", "special_i1e", "special_zeta", "polygamma",
        "special_ndtri", "special_log_ndtr")},
}  # fmt: skip
