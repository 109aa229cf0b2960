import re

import numpy as np
import pytest

import sciml
from sciml.inverse.alarms.collapse import CollapseWarning
from sciml.ode import AR1

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.fixture(scope="module")
def data():
    system = sciml.ode.gaussian_linear()
    return sciml.simulate(system, samples=400, seed=0, noise=system.noise)


@pytest.fixture(scope="module")
def fit(data):
    return sciml.fit(sciml.models.Gaussian(width=16), data, validation=0.1, epochs=5)


@pytest.mark.slow
def test_a_report_is_one_file_with_training_estimates_calibration_and_sources(fit, data, tmp_path):
    path = fit.report(tmp_path / "report.html", data.isel(sample=slice(100)))
    page = path.read_text()
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "Training", "Estimates", "Calibration", "How it was made", "What to cite",
    ]  # fmt: skip
    assert page.count("data:image/png;base64,") == 3
    assert "lueckmann2021" in page
    assert "http" not in re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_without_data_the_report_says_that_nothing_was_judged(fit, tmp_path):
    page = fit.report(tmp_path / "report.html").read_text()
    assert "Not judged on unseen data" in page
    assert page.count("data:image/png;base64,") == 1


def test_data_without_parameters_are_refused_and_nothing_is_written(fit, data, tmp_path):
    with pytest.raises(ValueError, match="a report needs `parameters"):
        fit.report(tmp_path / "report.html", data.drop_vars("parameters"))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_levels_of_the_noise_are_judged_too(tmp_path):
    from numpyro.distributions import Uniform

    noise = AR1(sd=Uniform(0.05, 0.3), correlation=0.5, estimate=True)
    system = sciml.ode.fitzhugh_nagumo()
    data = sciml.simulate(system, samples=120, seed=1, noise=noise)
    with pytest.warns(CollapseWarning):
        fit = sciml.fit(sciml.models.Dense(8, depth=1), data, epochs=2, noise=noise)
    page = fit.replace(collapsed=("noise_sd",)).report(tmp_path / "report.html", data).read_text()
    assert "<td>noise_sd</td>" in page
    assert "Of noise_sd it learned nothing" in page


def test_objects_show_themselves_as_tables(fit):
    shown = fit._repr_html_()
    assert "Gaussian(width=16" in shown
    assert f"{fit.parameter_count:,}" in shown
    problem = sciml.ode.lotka_volterra()
    shown = problem._repr_html_()
    assert all(name in shown for name in problem.parameter_names)
    assert "arXiv 2101.04653" in shown
    assert "∞" in shown
    assert "features" in sciml.ode.two_moons()._repr_html_()


@pytest.mark.slow
def test_estimates_and_truths_must_fit(fit, data):
    from sciml.figure import draw_estimates, panels

    found = fit.predict(data)
    figure, axes = panels(1, 2, (4.0, 2.0))
    with pytest.raises(ValueError, match="one axes for each parameter"):
        draw_estimates(found, data.parameters, axes)
    del figure
    assert np.isfinite(found.estimate).all()
