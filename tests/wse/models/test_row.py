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


def net(p, x):
    return jnp.tanh(x @ p["w"]) @ p["v"]


LABELS, SHARES = np.zeros(4, "i4"), np.ones(4, "f4")


def entropy(x, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))


@pytest.mark.parametrize(
    ("of", "batch", "mode", "said"),
    [
        (lambda p, b: jnp.mean((b[0] + net(p, b[0]) - b[1]) ** 2), (X, Y), "streaming", "a skip"),
        (lambda p, b: entropy(b[0] + net(p, b[0]), b[1]), (X, LABELS), "streaming", "a skip"),
        (lambda p, b: jnp.mean((net(p, b) - b) ** 2), X, "pipelined", "of an autoencoder"),
        (
            lambda p, b: jnp.mean(b[1][:, None] * (net(p, b[0]) - b[0]) ** 2),
            (X, SHARES),
            "pipelined",
            "of an autoencoder",
        ),
        (
            lambda p, b: jnp.mean(b[2][:, None] * (net(p, b[0]) - b[1]) ** 2),
            (X, Y, SHARES),
            "pipelined",
            "",
        ),
    ],
)
def test_what_enters_and_is_read_behind_the_last_product_is_a_skip_or_in_doubt(
    of, batch, mode, said
):
    """A skip from the input to the output behind the last product looks as a target does."""
    graph = wse.trace(of, {"w": W, "v": V}, batch)
    found, forward = wse.estimate(graph), wse.inference(graph)
    assert found.cluster.mode == forward.cluster.mode == wse.check(graph).mode == mode
    for cautions in (found.cautions, forward.cautions):
        told = [x for x in cautions if "array 1 of the batch, (4, 6), enters the net" in x]
        assert [said in x for x in told] == [True] * bool(said)
    assert said in wse.check(graph).why
    assert said in str(forward)
    asked = wse.estimate(graph, machine=wse.CS2(mode="pipelined"))
    assert not any("enters the net" in x for x in asked.cautions)
    assert any("no plain chain" in x for x in asked.cautions) == (mode == "streaming")


def test_forward_only_what_is_not_counted_is_said():
    graph = wse.trace(loss(endless), {"w": W, "v": V}, (X, Y))
    assert any("(while) are not counted" in x for x in wse.inference(graph).cautions)
