"""Scores of fields against closed forms and against scikit-image, xskillscore and SciPy."""

import numpy as np
import pytest
import xarray as xr
from scipy.signal import convolve2d
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from sciml import diagnose
from sciml.wind import block, block_mean, conservative_bicubic

RNG = np.random.default_rng(0)
TRUTH = RNG.gamma(2, 4, (3, 24, 32))
GUESS = TRUTH + RNG.normal(0.5, 1, TRUTH.shape)
DRAWN = RNG.normal(5, 2, (12, 400))
SEEN = RNG.normal(5, 2, 400)


def test_vector_error_and_peak_ratio():
    stack, off = np.stack([TRUTH, GUESS]), np.array([3.0, 4.0])[:, None, None, None]
    assert diagnose.vector_rmse(stack + off, stack) == pytest.approx(5)
    expected = peak_signal_noise_ratio(TRUTH, GUESS, data_range=40.0)
    assert diagnose.psnr(GUESS, TRUTH, value_range=40.0) == pytest.approx(expected)
    assert diagnose.psnr(TRUTH, TRUTH, value_range=40.0) == np.inf


def test_structural_similarity_agrees_with_scikit_image():
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    expected = [
        structural_similarity(t, g, data_range=40.0, **options)
        for t, g in zip(TRUTH, GUESS, strict=True)
    ]
    assert diagnose.ssim(GUESS, TRUTH, value_range=40.0) == pytest.approx(np.mean(expected))
    assert diagnose.ssim(TRUTH, TRUTH, value_range=40.0) == pytest.approx(1)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_the_fractions_skill_score_is_that_of_shares_counted_one_by_one(width):
    ones = np.ones((width, width)) / width**2
    shares = [
        np.stack([convolve2d(f > 12, ones, mode="same") for f in fields])
        for fields in (GUESS, TRUTH)
    ]
    p, q = shares
    expected = 1 - np.sum((p - q) ** 2) / (np.sum(p**2) + np.sum(q**2))
    score = diagnose.fractions_skill(GUESS, TRUTH, threshold=12.0, width=width)
    assert score == pytest.approx(expected)


def test_a_displaced_gust_is_forgiven_by_a_wide_neighbourhood():
    here, there = np.zeros((2, 40, 40))
    here[20, 20] = there[20, 23] = 30.0
    scores = [
        diagnose.fractions_skill(there, here, threshold=20.0, width=w) for w in (1, 5, 15, 25)
    ]
    assert scores[0] == 0
    assert (np.diff(scores) > 0).all()
    # Squares of width n, 3 apart, share n (n − 3) points: the score is the shared part.
    np.testing.assert_allclose(scores[1:], [1 - 3 / w for w in (5, 15, 25)])
    assert np.isnan(diagnose.fractions_skill(here, here, threshold=99.0, width=3))


def test_crps_agrees_with_xskillscore_and_with_all_pairs():
    xskillscore = pytest.importorskip("xskillscore")
    members = xr.DataArray(DRAWN, dims=("member", "point"))
    expected = xskillscore.crps_ensemble(xr.DataArray(SEEN, dims="point"), members, dim="point")
    assert diagnose.crps(DRAWN, SEEN) == pytest.approx(float(expected))
    pairs = np.abs(DRAWN[:, None] - DRAWN[None]).mean(axis=-1)
    fair = np.abs(DRAWN - SEEN).mean() - pairs.sum() / (2 * 12 * 11)
    assert diagnose.crps(DRAWN, SEEN, fair=True) == pytest.approx(fair)
    assert diagnose.crps(DRAWN[:1], SEEN) == pytest.approx(np.abs(DRAWN[0] - SEEN).mean())


def test_fair_crps_does_not_depend_on_the_number_of_members():
    many = np.random.default_rng(1).normal(size=(40, 20000))
    truth = np.random.default_rng(2).normal(size=20000)
    # Of a standard normal forecast and truth: 2/√π − 1/√π.
    for count in (2, 5, 40):
        assert diagnose.crps(many[:count], truth, fair=True) == pytest.approx(
            1 / np.sqrt(np.pi), abs=0.012
        )


def test_the_rank_histogram_agrees_with_xskillscore():
    xskillscore = pytest.importorskip("xskillscore")
    members = xr.DataArray(DRAWN, dims=("member", "point"))
    expected = xskillscore.rank_histogram(xr.DataArray(SEEN, dims="point"), members, dim="point")
    ours = diagnose.rank_histogram(DRAWN, SEEN)
    np.testing.assert_array_equal(ours, expected)
    assert ours.sum() == 400


@pytest.mark.parametrize(("shrink", "ratio"), [(1.0, 1.0), (0.5, 0.53)])
def test_spread_and_error_tell_a_right_ensemble_from_a_too_sure_one(shrink, ratio):
    rng = np.random.default_rng(0)
    scale = np.linspace(0.5, 3, 20000)
    members, truth = scale * rng.normal(size=(8, 20000)) * shrink, scale * rng.normal(size=20000)
    result = diagnose.spread_skill(members, truth, bins=5)
    # Error² = σ² (1 + s²/m), spread² = s² σ² (m + 1)/m.
    expected = shrink * np.sqrt((9 / 8) / (1 + shrink**2 / 8))
    assert float(result.ratio) == pytest.approx(expected, rel=0.03)
    assert ratio == pytest.approx(expected, abs=0.02)
    np.testing.assert_allclose(result.spread / result.error, expected, rtol=0.35)
    assert (np.diff(result.spread) > 0).all()


@pytest.mark.parametrize("shape", [(32, 32), (24, 40), (2, 17, 30)])
def test_the_cosine_spectrum_sums_to_half_the_variance(shape):
    u, v = RNG.normal(size=(2, *shape))
    spectrum = diagnose.cosine_spectrum(u, v, spacing_m=3000.0)
    expected = (u.var(axis=(-2, -1)) + v.var(axis=(-2, -1))).mean() / 2
    assert spectrum.energy.sum() == pytest.approx(expected)
    assert spectrum.wavelength_m[0] == 2 * min(shape[-2:]) * 3000


def test_a_cosine_is_in_its_ring():
    x = np.arange(48) + 0.5
    wave = np.cos(np.pi * 12 * x / 48)[None].repeat(48, 0)
    spectrum = diagnose.cosine_spectrum(wave, spacing_m=1000.0)
    place = int(spectrum.energy.argmax())
    assert spectrum.wavelength_m[place] == pytest.approx(8000)  # 48 km hold six
    assert spectrum.energy[place] == pytest.approx(0.25)
    other = diagnose.windowed_spectrum(np.sin(2 * np.pi * 6 * x / 48)[None].repeat(48, 0),
                                       spacing_m=1000.0)  # fmt: skip
    assert other.wavelength_m[int(other.energy.argmax())] == pytest.approx(8000)


def test_the_windowed_spectrum_sums_to_half_the_variance_in_the_mean_and_knows_no_plane():
    noise = np.random.default_rng(0).normal(size=(400, 20, 28))
    spectrum = diagnose.windowed_spectrum(noise, spacing_m=1.0)
    assert spectrum.energy.sum() == pytest.approx(0.5, rel=0.02)
    y, x = np.mgrid[:20, :28].astype(float)
    tilted = diagnose.windowed_spectrum(noise + 9 * y - 5 * x + 3, spacing_m=1.0)
    np.testing.assert_allclose(tilted.energy, spectrum.energy, rtol=1e-6)


def synthesis(slope, n=64, samples=20):
    """Periodic fields of a given spectral slope, of which a corner is cut out."""
    rng = np.random.default_rng(0)
    k = np.hypot(np.fft.fftfreq(4 * n, 1 / (4 * n))[:, None], np.fft.rfftfreq(4 * n, 1 / (4 * n)))
    k[0, 0] = np.inf
    noise = np.fft.rfft2(rng.normal(size=(samples, 4 * n, 4 * n)))
    return np.fft.irfft2(noise * k ** ((slope - 1) / 2))[:, :n, :n]


@pytest.mark.parametrize("transform", [diagnose.cosine_spectrum, diagnose.windowed_spectrum])
@pytest.mark.parametrize("slope", [-5 / 3, -3.0])
def test_a_limited_area_shows_the_slope_of_the_whole(transform, slope):
    wavelength, energy = transform(synthesis(slope), spacing_m=1.0)
    band = (wavelength < 20) & (wavelength > 4)
    fitted = np.polyfit(-np.log(wavelength[band]), np.log(energy[band]), 1)[0]
    assert fitted == pytest.approx(slope, abs=0.25)


def test_what_is_smoothed_away_shows_in_the_ratio_and_the_effective_wavelength():
    fine = synthesis(-2.0)
    spectra = {
        name: diagnose.cosine_spectrum(np.asarray(field), spacing_m=1000.0)
        for name, field in {
            "truth": fine,
            "smooth": conservative_bicubic(block_mean(fine, 4), 4),
        }.items()
    }
    ratio = diagnose.spectral_ratio(spectra["smooth"], spectra["truth"])
    assert ratio[0] == pytest.approx(1, abs=0.02)
    assert ratio[-20:].max() < 0.2
    effective = diagnose.effective_wavelength_m(spectra["smooth"], spectra["truth"])
    assert 8000 <= effective <= 16000  # two to four coarse cells of 4 km
    assert diagnose.effective_wavelength_m(spectra["truth"], spectra["truth"]) == pytest.approx(
        spectra["truth"].wavelength_m[-1]
    )
    with pytest.raises(ValueError, match="other rings"):
        diagnose.spectral_ratio(
            spectra["truth"], diagnose.cosine_spectrum(fine[:, :32], spacing_m=1.0)
        )


def test_structure_functions_and_gradients_of_a_plane():
    y, x = np.mgrid[:20, :30].astype(float)
    plane = 3 * x + 4 * y
    s2 = diagnose.structure_function(plane, distances=[1, 2, 5])
    along_x = [20 * (30 - r) for r in (1, 2, 5)]
    along_y = [30 * (20 - r) for r in (1, 2, 5)]
    expected = [
        (a * (3 * r) ** 2 + b * (4 * r) ** 2) / (a + b)
        for r, a, b in zip((1, 2, 5), along_x, along_y, strict=True)
    ]
    np.testing.assert_allclose(s2, expected)
    np.testing.assert_allclose(diagnose.gradient_length(plane, spacing_m=10.0), 0.5)
    s1 = diagnose.structure_function(plane, 0 * plane, distances=[1], order=1.0)
    np.testing.assert_allclose(s1, (along_x[0] * 3 + along_y[0] * 4) / (along_x[0] + along_y[0]))


def test_noise_has_twice_its_variance_at_every_distance():
    noise = np.random.default_rng(0).normal(0, 2, (4, 80, 80))
    np.testing.assert_allclose(
        diagnose.structure_function(noise, distances=[1, 7, 30]), 8, rtol=0.05
    )


def test_distances_of_distributions():
    assert diagnose.distribution_distance(TRUTH + 1.5, TRUTH) == pytest.approx(1.5)
    assert diagnose.distribution_distance(TRUTH[:, ::-1], TRUTH) == 0
    np.testing.assert_allclose(diagnose.quantile_bias(1.1 * TRUTH, TRUTH, [0.5, 0.99]),
                               0.1 * np.quantile(TRUTH, [0.5, 0.99]))  # fmt: skip


def test_subgrid_variance_and_its_ratio():
    variance = diagnose.subgrid_variance(TRUTH, 4)
    assert variance[1, 2, 3] == pytest.approx(TRUTH[1, 8:12, 12:16].var())
    coarse = block_mean(TRUTH, 4)
    assert diagnose.subgrid_variance_ratio(np.asarray(block(coarse, 4)), TRUTH, 4) < 1e-10
    half = TRUTH / 2 + np.asarray(block(coarse, 4), np.float64) / 2
    assert diagnose.subgrid_variance_ratio(half, TRUTH, 4) == pytest.approx(0.25, rel=1e-4)
    by_wind = diagnose.subgrid_by_wind(half, TRUTH, 4, [0.0, 6.0, 8.0, 10.0, 40.0])
    np.testing.assert_allclose(by_wind.estimate / by_wind.truth, 0.5, rtol=1e-4)
    assert int(by_wind.blocks.sum()) == variance.size


def test_the_interval_of_a_skill_is_wider_for_weather_that_lasts():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 4, 5))
    storm = np.repeat(rng.gamma(2, 1, 20), 10)[:, None, None]  # ten hours of one difficulty
    baseline = truth + storm * rng.normal(size=truth.shape)
    estimate = truth + 0.8 * storm**0.5 * rng.normal(size=truth.shape)
    one, ten = (
        diagnose.skill_interval(estimate, truth, baseline, block=b, resamples=400) for b in (1, 10)
    )
    assert one.skill == ten.skill == pytest.approx(diagnose.skill(estimate, truth, baseline))
    assert one.low < one.skill < one.high
    assert ten.high - ten.low > 1.5 * (one.high - one.low)
    sure = diagnose.skill_interval(truth + 0.5, truth, truth + 1.0, block=10)
    assert sure == pytest.approx((0.75, 0.75, 0.75))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagnose.psnr(GUESS, TRUTH, value_range=0.0), "value_range is 0"),
        (lambda: diagnose.ssim(GUESS[:, :9], TRUTH[:, :9], value_range=1.0), "at least 11 points"),
        (lambda: diagnose.fractions_skill(GUESS, TRUTH, threshold=1.0, width=2), "odd number"),
        (lambda: diagnose.crps(DRAWN, SEEN[:3]), r"must be \(member"),
        (lambda: diagnose.crps(DRAWN[:1], SEEN, fair=True), "no fair score"),
        (lambda: diagnose.spread_skill(DRAWN[:1], SEEN), "at least two members"),
        (lambda: diagnose.cosine_spectrum(TRUTH, spacing_m=0.0), "a positive spacing"),
        (lambda: diagnose.windowed_spectrum(TRUTH * np.nan, spacing_m=1.0), "a value is missing"),
        (lambda: diagnose.structure_function(TRUTH, distances=[24]), "each must be 1 to 23"),
        (lambda: diagnose.subgrid_variance(TRUTH, 5), "factor is 5 on a 24×32 field"),
        (lambda: diagnose.subgrid_by_wind(GUESS, TRUTH, 4, [2.0, 1.0]), "edges ascend"),
        (lambda: diagnose.skill_interval(GUESS, TRUTH, TRUTH, block=2), "at least two blocks"),
    ],
)
def test_wrong_input_is_refused(call, message, untyped):
    with pytest.raises(ValueError, match=message):
        call()
