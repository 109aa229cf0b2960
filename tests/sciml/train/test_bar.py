"""The bar of a training says what it does."""

import jax.numpy as jnp

from sciml.train import Recipe, loop, train


def test_it_says_compiling_and_then_training(monkeypatch):
    said: list[str] = []

    class Bar(loop.tqdm):
        def __init__(self, *args, desc, **options):
            said.append(desc)
            super().__init__(*args, desc=desc, **options)

        def set_description(self, desc=None, refresh=True):
            said.append(desc or "")
            super().set_description(desc, refresh)

    def compiled(*arguments):
        said.append("compiled")
        return known(*arguments)

    known = loop.compiled
    monkeypatch.setattr(loop, "tqdm", Bar)
    monkeypatch.setattr(loop, "compiled", compiled)
    data = {"x": jnp.ones((4, 2))}
    train(
        lambda w, batch, key: jnp.mean((batch["x"] @ w) ** 2),
        jnp.ones(2),
        data,
        recipe=Recipe(batch=2),
        epochs=2,
    )
    assert said == ["compiling", "compiled", "training"]
