"""Solutions of Gram chains held against simulations, in sweeps and in files."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.montecarlo.sampling.test_gram_chain import K0, KINKED, WITH_BIASES, net
from tests.tables import slow

PAIR = net(activation="tanh", depth=3, inner_weight_variance=1.5, outer_weight_variance=1.3)


def drawn(network, kernel, samples, widths=(24, 48), **options):
    return [
        ft.simulate(network.replace(width=N), kernel, samples=n, seed=N, **options)
        for N, n in zip(widths, samples, strict=True)
    ]


def by_name(comparison):
    return {field.name: field for field in comparison.extrapolated}


@pytest.mark.parametrize(
    ("inputs", "changes"),
    [(1, {"normalization": None}), slow(2, {"normalization": "layer", "gated": True})],
)
def test_two_verdicts(inputs, changes, tmp_path):
    network = net(depth=2, branch_scale=0.4, **changes)
    solution = ft.solve(network, K0[inputs])
    ensembles = drawn(network, K0[inputs], (3000, 3000), cross_inputs=inputs > 1)
    comparison = ft.compare(solution, ensembles)
    fields = by_name(comparison)
    assert comparison.verdict == "agrees"
    compared = {"residual_kernels", "kernels", "G11", "kernel_variance", "four_point"}
    assert {*compared, "stream_covariance", "mean_shift", "kernel_shift"} <= fields.keys()
    assert fields["stream_covariance"].index["layer_"].max() == 2
    assert "Does it describe width 24?" in comparison.statement
    comparison.save(tmp_path / "c.npz")
    assert ft.load(tmp_path / "c.npz").statement == comparison.statement
    # A wrong theory, which differs in the noise of the units alone.
    other = ft.solve(network.replace(expansion=1.0), K0[inputs])
    with pytest.raises(ValueError, match=r"expansion 1\.0 in the theory, 2\.0 in the simulation"):
        ft.compare(other, ensembles)
    for name in ("kernels", "G11", "mean_shift", "kernel_shift", "four_point", "stream_covariance"):
        getattr(other, name)
    vars(other)["network"] = network
    assert by_name(ft.compare(other, ensembles))["G11"].verdicts.tolist().count("disagrees")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "depth", "changes"),
    [
        (1, 3, {"normalization": None, "activation": "tanh", "expansion": 0.5, **WITH_BIASES}),
        (1, 2, {"normalization": None, "activation": KINKED, "skip_scale": 0.8}),
        (1, 2, {"activation": "gelu", "epsilon": 0.1, "expansion": 4.0}),
        (2, 2, {"normalization": "layer", "activation": "relu", "expansion": 4.0}),
        (2, 1, {"activation": "tanh", "gated": True, "expansion": 4.0}),
        (2, 1, {"norm_position": "post", "activation": "gelu", "epsilon": 0.1, **WITH_BIASES}),
        (3, 1, {"normalization": None, "activation": "relu", **WITH_BIASES}),
        (3, 1, {"normalization": "layer", "norm_position": "post", "activation": KINKED}),
    ],
)
def test_the_order_1_over_N_to_two_per_cent(inputs, depth, changes):
    network = net(depth=depth, branch_scale=0.5, **changes)
    options = {"widths": (24, 96), "cross_inputs": inputs > 1}
    ensembles = drawn(network, K0[inputs], (60_000, 200_000), **options)
    comparison = ft.compare(ft.solve(network, K0[inputs]), ensembles)
    fields = by_name(comparison)
    # At 24 units 1/N² is as large as chance in some entries, which `remainder` says.
    assert comparison.verdict != "disagrees", comparison.statement
    for name in ("residual_kernels", "kernels", "G11", "stream_covariance"):
        field = fields[name]
        off = np.abs(field.simulation - field.theory) - field.remainder
        seen = 3 * field.error + field.remainder < 0.02 * np.abs(field.theory)
        assert seen.any(), (name, field.error / field.theory, field.remainder / field.theory)
        assert np.all(off < np.where(seen, 3, 4) * field.error), (name, field.z)
    for name in ("mean_shift", "kernel_shift"):
        field = fields[name]
        off = np.abs(field.simulation - field.theory) - field.remainder
        assert np.all(off < 3 * field.error), (name, field.z)


def test_sweeps_and_files(tmp_path):
    grid = ft.sweep(
        PAIR,
        K0[2],
        over={"branch_scale": [0.1, 0.5], "normalization": ["rms", None], "width": [24, 48]},
        of=["kernels", "kernel_shift", "stream_covariance", "output_response"],
    )
    one = ft.solve(PAIR.replace(branch_scale=0.5, width=48), K0[2])
    at = grid.sel(branch_scale=0.5, width=48, normalization="rms")
    for name in ("kernels", "kernel_shift", "stream_covariance", "output_response"):
        np.testing.assert_allclose(at[name].values, getattr(one, name), rtol=1e-12, err_msg=name)
    with pytest.raises(ValueError, match="of must not have variance_2, which needs"):
        ft.sweep(PAIR, 1.0, over={"branch_scale": [0.1]}, of="variance_2")
    one.save(tmp_path / "s.npz")
    loaded = ft.load(tmp_path / "s.npz")
    assert loaded.network == one.network and type(loaded) is type(one)
    np.testing.assert_array_equal(loaded.kernels, one.kernels)
