"""Of which traced functions an estimate may say that they are a plain chain of dense layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wse

draw = np.random.default_rng(0)
W, V = (draw.normal(size=(6, 6)).astype("f4") for _ in range(2))
X, Y = (draw.normal(size=(4, 6)).astype("f4") for _ in range(2))
BIAS, MEAN = np.ones(6, "f4"), X.mean(0)


def loss(middle):
    def of(params, batch):
        outputs = middle(params, batch[0])
        return jnp.mean(optimal(outputs) * (outputs - batch[1]) ** 2)

    return of


def optimal(x):
    return jax.nn.softmax(x, axis=-1)  # behind the last product there may be anything


def dropped(p, x):
    kept = jax.random.bernoulli(jax.random.key(0), 0.9, x.shape)
    return jnp.where(kept, jnp.tanh(x @ p["w"]), 0.0) @ p["v"]


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def endless(p, x):
    turn = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.tanh(s[1] @ V)), (0, x))
    return jax.lax.stop_gradient(turn[1]) @ p["w"] @ p["v"]


@pytest.mark.parametrize(
    "middle",
    [
        lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"],
        lambda p, x: jax.nn.gelu(x @ p["w"] + BIAS) @ p["v"],
        lambda p, x: jax.nn.relu((x - MEAN) @ p["w"]) @ p["v"],
        lambda p, x: jax.nn.swish(p["w"].T @ x.T).T @ p["v"],
        lambda p, x: jnp.tanh(x.reshape(4, 2, 3).reshape(4, 6) @ p["w"]) @ p["v"],
        dropped,
    ],
)
def test_products_and_functions_of_single_numbers_are_a_chain(middle):
    found = wse.estimate(loss(middle), {"w": W, "v": V}, (X, Y))
    assert "plain chain of dense layers that stays" in str(found)


@pytest.mark.parametrize(
    "middle",
    [
        lambda p, x: (x + jnp.tanh(x @ p["w"])) @ p["v"],
        lambda p, x: norm(x @ p["w"]) @ p["v"],
        lambda p, x: jax.nn.softmax(x @ p["w"]) @ p["v"],
        lambda p, x: jnp.sort(x @ p["w"], axis=1) @ p["v"],
        lambda p, x: jnp.cumsum(x @ p["w"], axis=1) @ p["v"],
        lambda p, x: jnp.roll(x @ p["w"], 1, axis=0) @ p["v"],
        lambda p, x: jax.nn.softmax((x @ p["w"]) @ (x @ p["v"]).T) @ x,
        endless,
    ],
)
def test_what_joins_or_mixes_is_none(middle):
    found = wse.estimate(loss(middle), {"w": W, "v": V}, (X, Y))
    assert "for all but plain chains of dense layers" in str(found)
    assert ("(while) are not counted" in str(found)) == (middle is endless)
