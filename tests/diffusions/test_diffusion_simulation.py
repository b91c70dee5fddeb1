"""`simulate` for diffusion networks: reproducibility, resuming, results, limits and bad input."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions import diffusion_simulation
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork, ParameterLaw
from tests.montecarlo.statistics_of_draws import assert_same as assert_identical

NET = DiffusionNetwork(depth=5, width=4)
LAW = ParameterLaw(row_covariance=np.eye(4), column_covariance=np.eye(4) / 4)
METHODS = ("kernel", "weights", "sde", "gram")


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_numbers_whatever_the_chunk(small_blocks, method):
    arguments = {"samples": 150, "seed": 11, "keep": True, "method": method}
    one = ft.simulate(NET, [0.0, 1.0, 1.0], **arguments)
    for chunk in (1, 40, 1000):
        assert_identical(one, ft.simulate(NET, [0.0, 1.0, 1.0], chunk=chunk, **arguments))
    other = ft.simulate(NET, [0.0, 1.0, 1.0], **arguments | {"seed": 12})
    assert len(np.unique(np.concatenate([one.outputs[:, 0], other.outputs[:, 0]]))) == 300


def test_resumes_with_the_same_numbers(small_blocks, tmp_path, monkeypatch):
    drawn, original = [], diffusion_simulation._block

    def block(run, block):
        drawn.append(block.number)
        if drawn == [0, 1, 2, 3, 4, 5]:
            raise KeyboardInterrupt
        return original(run, block)

    monkeypatch.setattr(diffusion_simulation, "_block", block)
    arguments = {"samples": 150, "seed": 3, "chunk": 16}
    with pytest.raises(KeyboardInterrupt):
        ft.simulate(NET, [0.0, 1.0], directory=tmp_path / "chunks", **arguments)
    assert len(list((tmp_path / "chunks").glob("*.npz"))) == 5
    resumed = ft.simulate(NET, [0.0, 1.0], directory=tmp_path / "chunks", **arguments)
    assert drawn[6:] == [5, 6, 7, 8, 9]
    assert_identical(resumed, ft.simulate(NET, [0.0, 1.0], **arguments))


@pytest.mark.parametrize("method", METHODS)
def test_without_parameters_nothing_moves(method):
    net = NET.replace(weight_variance=0.0, bias_variance=0.0)
    e = ft.simulate(net, [0.0, 2.0], samples=20, method=method)
    np.testing.assert_array_equal(e.mean, np.tile([0.0, 2.0], (6, 1)))
    for name in ("covariance", "kurtosis", "gram_variance", "covariance_error"):
        assert not getattr(e, name).any(), name
    np.testing.assert_array_equal(e.outputs, np.tile([0.0, 2.0], (20, 1)))


@pytest.mark.parametrize("method", METHODS)
def test_zero_stays_zero_and_copies_stay_copies(method):
    e = ft.simulate(NET.replace(bias_variance=0.0), [0.0, 1.0, 1.0], samples=50, method=method)
    assert not e.outputs[:, 0].any() and not e.kurtosis[:, 0].any()
    np.testing.assert_allclose(e.outputs[:, 1], e.outputs[:, 2], rtol=0, atol=1e-13)
    assert e.outputs[:, 1].std() > 0.1


def test_estimates_are_those_of_the_networks():
    e = ft.simulate(NET, [0.0, 1.0], samples=101, keep=True)
    np.testing.assert_allclose(e.gram, e.grams.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(e.gram_variance, e.grams.var(axis=0, ddof=1), atol=1e-14)
    np.testing.assert_allclose(e.times, np.linspace(0, 1, 6))
    one = ft.simulate(NET.replace(width=1), [0.5], samples=101)
    y = one.outputs[:, 0]
    np.testing.assert_allclose(one.mean[-1], y.mean(), rtol=1e-12)
    np.testing.assert_allclose(one.covariance[-1, 0, 0], y.var(ddof=1), rtol=1e-12)
    kurtosis = ((y - y.mean()) ** 4).mean() / y.var() ** 2 - 3
    # The bias of variances is not taken out of the fourth moment.
    np.testing.assert_allclose(one.kurtosis[-1, 0], kurtosis, atol=0.2)


@pytest.mark.parametrize("ending", ["npz", "nc"])
@pytest.mark.parametrize("keep", [False, True])
def test_files(tmp_path, ending, keep):
    e = ft.simulate(NET, np.ones((2, 4)), samples=20, keep=keep)
    e.save(tmp_path / f"e.{ending}")
    assert_identical(ft.DiffusionEnsemble.load(tmp_path / f"e.{ending}"), e)
    with pytest.raises(ValueError, match="kind DiffusionEnsemble"):
        ft.Ensemble.load(tmp_path / f"e.{ending}")


def test_files_of_parameter_laws_and_labels(tmp_path):
    e = ft.simulate(NET.replace(parameter_law=LAW), [0.0, 1.0], samples=20, method="sde")
    e.save(tmp_path / "e.npz")
    assert_identical(ft.DiffusionEnsemble.load(tmp_path / "e.npz"), e)
    labelled = e.to_xarray()
    assert labelled.covariance.sel(time=1.0).dims == ("input", "input_")
    assert labelled.attrs["method"] == "sde" and labelled.mean_error.attrs["long_name"]
