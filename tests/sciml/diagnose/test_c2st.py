import signal
import sys
import traceback

import numpy as np
import pytest

from sciml.diagnose import Classifier, c2st, local_c2st

SIMULATIONS, PLACES, NULLS = 500, 8, 23


@pytest.mark.slow
def test_equal_sets_cannot_be_told_apart_and_separate_ones_can():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 2))
    same, apart = c2st(a, b), c2st(a, b + 6)
    assert float(same.score) == pytest.approx(0.5, abs=0.06)
    assert float(apart.score) > 0.99
    assert float(same.spread) == pytest.approx(same.accuracy.values.std(ddof=1))
    assert same.sizes == {"fold": 5}


def test_the_score_is_the_best_accuracy_there_is():
    """Two normals two apart: the best classifier is right in Φ(1) = 84 % of cases."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 400, 1))
    assert float(c2st(a, b + 2).score) == pytest.approx(0.841, abs=0.04)


def test_c2st_agrees_with_sbi():
    torch = pytest.importorskip("torch")
    metrics = pytest.importorskip("sbi.utils.metrics")
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 200, 2))
    b = 0.5 + 0.6 * b
    theirs = metrics.c2st(torch.as_tensor(a), torch.as_tensor(b), classifier="mlp")
    assert float(c2st(a, b).score) == pytest.approx(float(theirs), abs=0.07)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.zeros((50, 2)), np.zeros((50, 3)), "same parameters"),
        (np.zeros(50), np.zeros(50), "same parameters"),
        (np.zeros((50, 2)), np.zeros((5, 2)), "50 and 5 draws"),
        (np.zeros((50, 2)), np.full((50, 2), np.inf), "not finite"),
    ],
)
def test_c2st_refuses(a, b, message):
    with pytest.raises(ValueError, match=message):
        c2st(a, b)


def local(model, draws, **options):
    cut = slice(SIMULATIONS), slice(SIMULATIONS, None)
    return local_c2st(
        draws[:, cut[0]],
        model.truth[cut[0]],
        model.observation[cut[0]],
        at=(draws[:, cut[1]], model.observation[cut[1]]),
        classifier=Classifier(units=16, steps=60),
        nulls=NULLS,
        **options,
    )


@pytest.mark.slow
def test_locally_right_posteriors_pass_and_wrong_ones_fail(conjugate):
    model = conjugate(SIMULATIONS + PLACES, 100)
    exact = local(model, model.exact)
    assert float(exact.p_value.min()) > 1 / (1 + NULLS)
    assert exact.sizes == {"sample": PLACES, "null": NULLS, "draw": 100}
    for wrong in (model.scaled(0.5), model.shifted(0.8), model.prior(np.random.default_rng(1))):
        assert float(local(model, wrong).p_value.median()) == 1 / (1 + NULLS)


@pytest.mark.slow
def test_only_the_place_where_the_posterior_is_wrong_fails(conjugate):
    """The posterior is moved where x₀ > 0 only."""
    model = conjugate(SIMULATIONS + PLACES, 100)
    moved = model.observation[:, 0] > 0
    found = local(model, np.where(moved[:, None], model.shifted(1.5), model.exact))
    there = moved[SIMULATIONS:]
    assert found.p_value.values[there].max() == 1 / (1 + NULLS)
    assert np.median(found.statistic.values[~there]) < 0.2 * np.median(
        found.statistic.values[there]
    )


@pytest.mark.usefixtures("untyped")
def test_local_c2st_refuses(conjugate):
    model = conjugate(40, 5)
    at = (model.exact, model.observation)
    with pytest.raises(ValueError, match="nulls is 0"):
        local_c2st(model.exact, model.truth, model.observation, at=at, nulls=0)
    with pytest.raises(ValueError, match="30 observations and 40 truths"):
        local_c2st(model.exact, model.truth, model.observation[:30], at=at)
    with pytest.raises(ValueError, match="measured alike"):
        local_c2st(model.exact, model.truth, model.observation[:, :1], at=at)
    with pytest.raises(ValueError, match="must have positive"):
        Classifier(units=0)


@pytest.mark.slow
def test_many_simulations_cost_no_more_than_some_and_give_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(3000, 1))
    x = theta + rng.normal(size=(3000, 1))
    wide = x / 2 + 1.5 * rng.normal(size=(2, 3000, 1))
    at = 1.5 * rng.normal(size=(700, 2, 1)), np.zeros((2, 1))
    small = Classifier(units=8, steps=60)
    module, found = sys.modules["sciml.diagnose.samples.local_c2st"], {}
    for size in (4096, 512):
        module.classify.clear_cache()
        monkeypatch.setattr(module, "BATCH", size)
        monkeypatch.setattr(module, "POINTS", 4096 if size == 4096 else 128)
        found[size] = local_c2st(wide, theta, x, at=at, classifier=small, nulls=7)
    module.classify.clear_cache()
    whole, part = found[4096], found[512]
    assert float(abs(whole.probability - part.probability).max()) < 0.15
    assert (part.p_value == 1 / 8).all()
    assert (whole.p_value == 1 / 8).all()


def test_ctrl_c_stops_a_classifier():
    """scikit-learn ends its training and goes on: the score would be that of no classifier."""
    sets = np.random.default_rng(0).normal(size=(2, 400, 2))

    def pressed(_number, frame):
        names = [each.name for each in traceback.extract_stack(frame)]
        if "_fit_stochastic" in names:
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, 0.005)

    before = signal.signal(signal.SIGALRM, pressed)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        with pytest.raises(KeyboardInterrupt):
            c2st(*sets)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
