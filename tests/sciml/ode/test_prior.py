"""Joint priors: names, draws, densities, coordinates, what is refused; scalar ones as before."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro import distributions as dist

import sciml
from sciml.ode import Observation, Static, System, Truncated, accumulate, open_simulations, prior
from sciml.ode.coordinates import Coordinates
from sciml.ode.rule import holds, parsed

pytestmark = pytest.mark.usefixtures("quick_compilation")
KEY = jax.random.key(3)
MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 0.5]])
PAIR = {("a", "b"): dist.MultivariateNormal(MEAN, COVARIANCE)}
SHARES = {("s", "i"): dist.Dirichlet(jnp.array([2.0, 3.0, 4.0]))}
UNIT = {"a": dist.Uniform(0.0, 1.0), "b": dist.Uniform(0.0, 1.0)}
RECORDED = [
    [0.8673704862594604, 1.9082670211791992, 0.6635221242904663],
    [0.5563143491744995, 2.8783254623413086, 0.7231930494308472],
]
BELOW = {("a", "b"): Truncated(UNIT, inside="a + b < 1")}


def drawn(of, samples=20_000):
    return prior.draw(of, samples, KEY, "test")


def system(of, **options):
    return System(
        name="line",
        vector_field=lambda t, u, p: (p[0] + 0 * u[0],),
        initial_state=lambda p: (p[1],),
        prior=of,
        observation=Observation.regular(interval=0.2, length=6),
        **options,
    )


def test_scalar_priors_give_the_draws_that_they_gave():
    """Recorded before joint priors were there."""
    of = {"a": dist.Uniform(0.0, 1.0), "b": dist.Normal(1.0, 2.0), "c": dist.LogNormal(0.0, 0.5)}
    found = prior.draw(of, 2, jax.random.key(7), "x")
    np.testing.assert_array_equal(found, np.array(RECORDED, np.float32))
    assert prior.described(of)["b"] == {"kind": "Normal", "loc": 1.0, "scale": 2.0}
    assert prior.rules(of) == []
    assert "inside" not in sciml.simulate(system({"a": of["a"], "b": of["b"]}), samples=2).attrs


def test_a_correlated_prior_has_its_moments():
    found = drawn(PAIR)
    np.testing.assert_allclose(found.mean(axis=0), MEAN, atol=0.05)
    np.testing.assert_allclose(np.cov(found.T), COVARIANCE, atol=0.06)
    assert prior.support(PAIR) == {"a": [None, None], "b": [None, None]}
    assert system(PAIR).parameter_names == ("a", "b")


@pytest.mark.slow
def test_the_last_component_of_a_dirichlet_is_what_is_left():
    found = drawn(SHARES)
    last = 1 - found.sum(axis=1)
    assert (found > 0).all()
    assert (last > 0).all()
    np.testing.assert_allclose(
        [*found.mean(axis=0), last.mean()], np.array([2, 3, 4]) / 9, atol=0.01
    )
    assert prior.rules(SHARES) == ["s + i < 1"]
    tiny = {("s", "i"): dist.Dirichlet(jnp.full(3, 0.01))}  # nearly all on the border
    points = prior.draw(tiny, 5000, KEY, "tiny")
    assert np.isfinite(np.asarray(Coordinates.of(tiny).inv(jnp.asarray(points)))).all()
    assert holds("s + i < 1", dict(zip("si", points.T, strict=True))).all()


def test_no_draw_breaks_the_rule_and_its_share_is_known():
    found = drawn(BELOW)
    assert (found.sum(axis=1) < 1).all()
    np.testing.assert_allclose(found.mean(axis=0), 1 / 3, atol=0.01)
    known = BELOW["a", "b"]
    traced = jax.jit(lambda key: known.sample(key, (500,)))(KEY)  # as where a fit simulates online
    assert (traced.sum(axis=1) < 1).all()
    assert known.share == pytest.approx(0.5, abs=0.01)
    assert float(known.log_prob(jnp.array([0.2, 0.3]))) == pytest.approx(-np.log(known.share))
    assert float(known.log_prob(jnp.array([0.8, 0.3]))) == -np.inf


def test_a_truncated_correlated_prior():
    of = {("a", "b"): Truncated(PAIR, inside="a < b + 3 or a > 4")}
    a, b = drawn(of).T
    assert ((a < b + 3) | (a > 4)).all()
    assert json.dumps(prior.described(of)).count("MultivariateNormal") == 1


@given(order=st.permutations(["a", "b", "s", "i", "k"]))
@settings(max_examples=15, deadline=None)
def test_permuted_names_permute_columns(order):
    """One distribution by names in any order: density and draws belong to names, not to places."""
    mean, spread = np.arange(5.0), np.diag(np.arange(1.0, 6.0)) + 0.3
    place = ["absik".index(name) for name in order]
    plain = dist.MultivariateNormal(mean, spread)
    turned = {tuple(order): dist.MultivariateNormal(mean[place], spread[np.ix_(place, place)])}
    point = np.linspace(-1, 2, 5)
    found = prior.log_prob(turned, jnp.asarray(point[place]))
    assert float(found) == pytest.approx(float(plain.log_prob(point)), rel=1e-4)
    assert prior.names_of(turned) == tuple(order)
    both = {"first": dist.Uniform(0.0, 9.0), tuple(order[:2]): dist.Dirichlet(jnp.ones(3))}
    assert [*prior.support(both)] == ["first", *order[:2]]


MIXED = {
    "k": dist.LogNormal(0.0, 1.0),
    **SHARES,
    **BELOW,
    ("u", "v"): dist.Uniform(-1, jnp.ones(2)).to_event(1),
}


@pytest.mark.slow
def test_coordinates_go_there_and_back_and_know_their_volume():
    of = Coordinates.of(MIXED)
    assert prior.names_of(MIXED) == ("k", "s", "i", "a", "b", "u", "v")
    with jax.enable_x64(True):
        z = jnp.asarray(np.random.default_rng(0).normal(size=(20, 7)))
        theta = of(z)
        np.testing.assert_allclose(of.inv(theta), z, rtol=1e-9)
        slope = jnp.linalg.slogdet(jax.vmap(jax.jacfwd(of))(z))[1]
        np.testing.assert_allclose(of.log_abs_det_jacobian(z, theta), slope, rtol=1e-9)


def test_the_density_on_a_simplex_integrates_to_one():
    ticks = (np.arange(300) + 0.5) / 300
    grid = jnp.asarray(np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2))
    for of in (SHARES, BELOW):
        assert float(jnp.exp(prior.log_prob(of, grid)).mean()) == pytest.approx(1, abs=0.02)


@pytest.mark.slow
def test_a_joint_prior_is_told_in_data_sets_and_stores(tmp_path):
    data = sciml.simulate(system(BELOW), samples=50)
    assert json.loads(data.attrs["inside"]) == ["a + b < 1"]
    assert json.loads(data.attrs["support"]) == {"a": [0.0, 1.0], "b": [0.0, 1.0]}
    assert json.loads(data.attrs["prior"])["a, b"]["inside"] == "a + b < 1"
    accumulate(system(BELOW), str(tmp_path / "s.zarr"), samples=20)
    accumulate(system(BELOW), str(tmp_path / "s.zarr"), samples=30)
    assert open_simulations(str(tmp_path / "s.zarr")).sizes["sample"] == 30
    other = {("a", "b"): Truncated(UNIT, inside="a + b < 0.9")}
    with pytest.raises(ValueError, match="prior: stored"):
        accumulate(system(other), str(tmp_path / "s.zarr"), samples=40)
    wider = {("a", "b"): dist.MultivariateNormal(MEAN, 2 * COVARIANCE)}
    assert prior.described(wider) != prior.described(PAIR)


def test_given_parameters_go_by_name():
    made = sciml.simulate(system(PAIR), parameters={"b": [1.0, 2.0], "a": [3.0, 4.0]})
    np.testing.assert_array_equal(made.parameters, [[3.0, 1.0], [4.0, 2.0]])


def test_own_simulations_take_a_joint_prior():
    theta = drawn(BELOW, 50)
    data = sciml.dataset(theta, theta @ np.ones((2, 3)), names=("a", "b"), prior=BELOW)
    assert json.loads(data.attrs["inside"]) == ["a + b < 1"]
    theta[7] = 0.7, 0.6
    with pytest.raises(ValueError, match=r"sample 7 .* by their prior a \+ b < 1"):
        sciml.dataset(theta, theta @ np.ones((2, 3)), names=("a", "b"), prior=BELOW)
    made = sciml.ode.black_box(lambda p: [p["s"], 1 - p["s"] - p["i"]], SHARES, 20)
    assert (made.observation.values > 0).all()


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({("a",): PAIR["a", "b"]}, r"has the shape \(2,\) and 1 names"),
        ({"a": PAIR["a", "b"]}, "must be scalar"),
        ({("a", "b"): dist.Uniform(0.0, jnp.ones(2))}, r"\.to_event\(1\)"),
        ({("s", "i", "r"): SHARES["s", "i"]}, "named all but the last"),
        ({("s/n", "i"): SHARES["s", "i"]}, "no word"),
        ({("a", "b"): dist.Multinomial(2, jnp.ones(2) / 2)}, "whole numbers"),
        ({("a", "b"): 3.0}, "numpyro distribution"),
        ({("a", "b"): PAIR["a", "b"], "a": dist.Normal()}, "come once"),
        ({("b", "a"): BELOW["a", "b"]}, "in the same order"),
        (
            {
                ("a", "b"): dist.TransformedDistribution(
                    PAIR["a", "b"], dist.transforms.OrderedTransform()
                )
            },
            "write the rest as a rule",
        ),
    ],
)
def test_what_is_no_joint_prior_is_refused(of, message):
    with pytest.raises(ValueError, match=message):
        system(of)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("a + c < 1", "speaks of c"),
        ("a + b", "compares nothing"),
        ("a <", "must compare formulas"),
        ("__import__('os').system('x') < 1", "is not known"),
        ("a.real < 1", "is not known"),
        ("pow(a, 2) < 1", "is not known"),
        ("sin(a) < 1", "'sin'"),
        ("a < 'x'", "is not known"),
        ("a < b == 1", "must compare"),
        ("a + b < 0.001", "holds for 0.00% of draws"),
        (lambda a, b: a < b, "must compare"),
    ],
)
def test_what_is_no_rule_is_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        Truncated(UNIT, inside=rule)


@given(a=st.floats(-2, 2), b=st.floats(0.1, 2))
@settings(max_examples=25, deadline=None)
def test_a_rule_says_what_python_says(a, b):
    text = "-1 < a * b <= 2 and not a / b > 1.5 or exp(-abs(a)) + b ** 2 >= log(b) + sqrt(b) - 0.5"
    said = eval(text, {"exp": np.exp, "abs": abs, "log": np.log, "sqrt": np.sqrt}, {"a": a, "b": b})
    with jax.enable_x64(True):
        assert bool(holds(text, {"a": a, "b": b})) == bool(said)
    assert parsed(text) is parsed(text)


def test_least_squares_refuses_a_rule():
    data = sciml.simulate(system(BELOW), samples=3)
    with pytest.raises(TypeError, match="Truncated"):
        sciml.baselines.least_squares(system(BELOW), data)


def test_a_static_task_takes_one_too():
    task = Static(name="pair", prior=PAIR, features=2, noise=None)
    assert sciml.simulate(task, samples=4).observation.shape == (4, 2)
    assert "MultivariateNormal" in task._repr_html_()
