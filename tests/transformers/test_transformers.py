"""Transformers: against explicit weights, exact cases, differences, and draws of the chain."""

from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.transformers.attention import RUNS
from fieldtheory.transformers.transformer_chain import TransformerKernels
from tests.oracles.transformers import Transformer, drawn, estimates
from tests.rounding import assert_same

K0 = np.array([[1, 0.4, -0.2], [0.4, 0.7, 0.1], [-0.2, 0.1, 1.3]])
BOTH = np.kron([[1, 0.3], [0.3, 1.2]], [[1, 0.4], [0.4, 0.8]])
# MLPs, and the options of attention in one.
MLP = {"mlp": np.tanh, "inner": 1.5, "inner_bias": 0.1, "outer": 1.3, "outer_bias": 0.05}
ALL = {"grouped": 2, "rotary": 10.0, "query_key_norm": True, "causal": False} | MLP
CASES = {
    "causal": {},
    "encoder": {"causal": False},
    "LayerNorm": {"norm": "layer"},
    "post-norm": {"post": True},
    "post-norm, MLP": {"post": True, "norm": "layer"} | MLP,
    "MLP": MLP,
    "parallel": {"parallel": True, "norm": "layer"} | MLP,
    "grouped": {"grouped": 2},
    "rotary": {"rotary": 10.0},
    # Those of keys are the same for all logits of a query, unless positions turn them.
    "biases": {"biases": (8.0, 30.0, 0.6, 0.2), "causal": False, "rotary": 3.0},
    "query-key norm": {"query_key_norm": True},
    "sequences": {"sequences": 2},
    "all": ALL,
}


def transformer(width, **options):
    """A network of the oracle with heads of width 4, so many that N = 4 H, and M = 2 N."""
    own = {"depth": 2, "heads": width // 4, "head_width": 4, "rho": (0.7, 0.6), "hidden": 2 * width}
    weights = {"query": 3.0, "key": 3.0, "value": 1.2, "out": 1.1}
    return Transformer(**own | weights | options)


def network(net, width, **changes):
    """The same of the package."""
    mlp = None
    if net.mlp is not None:
        mlp = {"activation": "tanh", "expansion": net.hidden / width}
        mlp |= {f"{of}_weight_variance": getattr(net, of) for of in ("inner", "outer")}
        mlp |= {f"{of}_bias_variance": getattr(net, f"{of}_bias") for of in ("inner", "outer")}
    parameters = {
        f"{of}_weight_variance": getattr(net, of) for of in ("query", "key", "value", "out")
    }
    for of, bias in zip(("query", "key", "value", "out"), net.biases, strict=True):
        parameters[f"{of}_bias_variance"] = bias
    return ft.TransformerNetwork(
        depth=net.depth,
        heads=net.heads,
        head_width=net.head_width,
        causal=net.causal,
        sequences=net.sequences,
        normalization=net.norm,
        norm_position="post" if net.post else "pre",
        epsilon=net.epsilon,
        branch_scale=net.rho,
        grouped_heads=net.grouped,
        rotary=net.rotary,
        query_key_norm=net.query_key_norm,
        parallel=net.parallel,
        mlp=mlp,
        width=width,
        **parameters | changes,
    )


def kernel_of(net):
    return BOTH if net.sequences == 2 else K0


def theory(net, width, **options):
    """Mean to order 1/N, its error, N Cov and its error, of R behind every step, as `estimates`."""
    s = ft.solve(network(net, width), kernel_of(net), **options)
    mean = packed(s.kernels + s.kernel_shift)[:-1]
    error = packed(np.hypot(s.kernels_error, s.kernel_shift_error))[:-1]
    own = range(len(mean))
    found = (s.stream_covariance[own, own], s.stream_covariance_error[own, own])
    return mean, error, *(width * each for each in found)


def z(first, first_error, second, second_error):
    return (first - second) / np.sqrt(first_error**2 + second_error**2 + 1e-24)


@pytest.mark.parametrize("case", CASES)
def test_means_and_covariances_are_those_of_networks_with_all_weights(case):
    width, net = 48, transformer(48, **CASES[case])
    mean, mean_error, V, V_error = estimates(drawn(net, kernel_of(net), width, 1000, 1), width)
    expected = theory(net, width, samples=1024)
    assert np.abs(z(mean, mean_error, *expected[:2])).max() < 4
    # The order 1/N² is some 6/N.
    allowed = np.hypot(V_error, 6 / width * np.sqrt(_sizes(expected[2])))
    assert np.abs(z(V, allowed, *expected[2:])).max() < 4


def test_a_theory_that_lacks_a_bias_fails():
    width, net = 48, transformer(48, **CASES["biases"])
    mean, mean_error, *_ = estimates(drawn(net, K0, width, 1000, 1), width)
    for lacking in range(4):
        rest = tuple(b * (n != lacking) for n, b in enumerate(net.biases))
        expected = theory(replace(net, biases=rest), width, samples=1024)
        assert np.abs(z(mean, mean_error, *expected[:2])).max() > 5


def _sizes(V):
    own = np.diagonal(V, axis1=1, axis2=2)
    return own[:, :, None] * own[:, None]


@pytest.mark.parametrize("case", ["causal", "all", "parallel", "biases"])
def test_draws_of_the_chain_have_the_law_of_networks_with_all_weights(case):
    width, net = 16, transformer(16, **CASES[case])
    weights = estimates(drawn(net, kernel_of(net), width, 2000, 2), width)
    e = ft.simulate(network(net, width), kernel_of(net), samples=20_000, seed=3)
    means = packed(e.kernel_mean)[:-1], packed(e.kernel_mean_error)[:-1]
    assert np.abs(z(*weights[:2], *means)).max() < 4
    variances = (width * packed(each) for each in (e.kernel_variance, e.kernel_variance_error))
    own = (np.diagonal(each, axis1=1, axis2=2) for each in weights[2:])
    assert np.abs(z(*own, *variances)).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_per_cent_of_a_variance_would_be_seen(case):
    """Networks with all weights have the variances of the chain, and wide chains of the theory."""
    net = transformer(32, **CASES[case])
    K = kernel_of(net)
    V = estimates(drawn(net, K, 32, 30_000, 4), 32)[2]
    e = ft.simulate(network(net, 32), K, samples=100_000, seed=5)
    assert abs(_total(V, 32 * packed(e.kernel_variance)) - 1) < 0.019
    wide = network(transformer(512, **CASES[case]), 512)
    e, s = ft.simulate(wide, K, samples=40_000, seed=6), ft.solve(wide, K, samples=2**15)
    assert abs(_total(s.stream_covariance, packed(e.kernel_variance)) - 1) < 0.019
    moved = (s.kernels + s.kernel_shift)[1:-1]
    error = np.hypot(e.kernel_mean_error, np.hypot(s.kernels_error, s.kernel_shift_error))[1:-1]
    assert np.abs((e.kernel_mean[1:-1] - moved) / (error + 1e-9)).max() < 4


def _total(V, variances):
    """The sums of the variances of all entries behind the first step, over each other."""
    layers = np.arange(len(variances))
    V = V[layers, layers] if V.ndim == 4 else V
    return np.diagonal(V, axis1=1, axis2=2)[1:].sum() / variances[1:].sum()


def test_comparisons_extrapolate_with_heads_that_grow_with_the_width():
    nets = [network(transformer(32, **MLP), 32).replace(width=N) for N in (32, 64)]
    assert [net.heads for net in nets] == [8, 16]
    simulated = [ft.simulate(net, K0, samples=4000, seed=net.width) for net in nets]
    assert ft.compare(ft.solve(nets[0], K0), simulated).verdict == "agrees"
    with pytest.raises(ValueError, match="heads 4 in the theory, 8"):
        ft.compare(ft.solve(nets[0].replace(heads=4), K0), simulated)
    with pytest.raises(ValueError, match="width must be a multiple of 4 .*got 30"):
        nets[0].replace(width=30)


@pytest.mark.parametrize("case", ["causal", "all"])
def test_wide_chains_have_the_covariances_of_the_theory(case):
    wide = network(transformer(256, **CASES[case]), 256)
    e, s = ft.simulate(wide, K0, samples=8000, seed=4), ft.solve(wide, K0)
    assert abs(_total(s.stream_covariance, packed(e.kernel_variance)) - 1) < 0.035


def test_numbers_of_three_blocks_of_attention():
    net = transformer(64, depth=3)
    expected = theory(net, 64)
    K = [2.876, 1.887, 0.751, 2.353, 1.139, 2.728]
    m = np.array([-0.132, -0.403, -0.407, -0.163, -0.384, -0.103])
    V = [19.30, 15.00, 14.53, 13.74, 12.74, 16.88]
    assert np.abs(expected[0][-1] - K - m / 64).max() < 0.015
    assert np.abs(np.diagonal(expected[2][-1]) / V - 1).max() < 0.01


@pytest.mark.parametrize(("norm", "position"), [("rms", "pre"), ("layer", "post"), (None, "pre")])
def test_one_token_is_a_linear_block(norm, position):
    own = {"depth": 3, "normalization": norm, "norm_position": position, "epsilon": 0.1}
    own |= {"skip_scale": 0.9, "width": 32, "readout_weight_variance": 1.5}
    net = ft.TransformerNetwork(
        heads=4, head_width=3, branch_scale=0.4, value_weight_variance=1.2,
        out_weight_variance=1.1, value_bias_variance=0.2, out_bias_variance=0.1, mlp=None, **own,
    )  # fmt: skip
    block = ft.BlockNetwork(
        activation="linear", branch_scale=0.4, expansion=12 / 32, inner_weight_variance=1.2,
        outer_weight_variance=1.1, inner_bias_variance=0.2, outer_bias_variance=0.1, **own,
    )  # fmt: skip
    s, linear = ft.solve(net, 0.8), ft.solve(block, [[0.8]])
    for name in ("kernels", "residual_kernels", "G11", "mean_shift", "kernel_shift"):
        assert_same(getattr(s, name), getattr(linear, name))
        assert not getattr(s, f"{name}_error").any()


def test_without_logits_attention_is_a_linear_map():
    U = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    width, heads, d, w = 24, 6, 4, 0.49 * 1.2 * 1.1
    net = network(transformer(width, norm=None, depth=1), width, key_weight_variance=0.0)
    s = ft.solve(net, K0)
    C = w * U @ K0 @ U.T
    assert_same(s.residual_kernels[1], C)
    a, b = np.triu_indices(3)
    own = (C[a, a] * C[b, b] + C[a, b] ** 2) / (heads * d)
    moved = np.array([packed(w * U @ unpacked(e, True) @ U.T) for e in np.eye(6)]).T
    wick = (K0[np.ix_(a, a)] * K0[np.ix_(b, b)] + K0[np.ix_(a, b)] * K0[np.ix_(b, a)]) / width
    assert_same(np.diagonal(s.G11[1, 1]), own + np.diagonal(moved @ wick @ moved.T))
    assert_same(s.response[1], moved + np.eye(6))
    assert not s.G11_error.any()


def test_small_logits_to_second_order():
    strength, width = 0.02, 16
    net = network(transformer(width, norm=None, depth=1, causal=False), width, logit_scale=strength)
    net = net.replace(query_weight_variance=1.0, key_weight_variance=1.0)
    found = ft.solve(net, K0, samples=2**14)
    # Of z, ⟨z_ac z_be⟩ = s² R_ab R_ce, which is the same for every d.
    U, P = np.full((3, 3), 1 / 3), np.eye(3) - 1 / 3
    inner = P @ K0 @ P
    shift = np.diagonal(inner) - np.trace(inner) / 3
    second = 2 * np.outer(np.diagonal(K0), np.ones(3)) * (shift @ K0 @ U.T / 3) / 2
    B = K0 * np.trace(inner @ K0) / 9 + (second + second.T) / 2
    change = found.residual_kernels[1] / (0.49 * 1.2 * 1.1) - U @ K0 @ U.T
    assert np.abs(change / strength**2 - B).max() < 0.05 * np.abs(B).max()


# Larger logits leave differences of second order to chance.
@pytest.mark.parametrize("options", [{}, ALL, {"biases": (0.8, 1.5, 0.6, 0.2)}])
def test_derivatives_are_those_of_differences_with_the_same_numbers(options):
    net = network(transformer(16, **options), 16)
    kernels = TransformerKernels(net, K0, 2**14, 1)
    attention, head = kernels.attention, kernels.heads[0]
    directions, step = [unpacked(e, True) for e in np.eye(6)], 1e-2
    V, slopes, seconds, differences = np.array([5, 1, 2, 5, 1, 5]) / 50, [], [], []
    for run in range(RUNS):
        at = attention.mean(K0, head, run)
        ahead, behind = (
            np.array([packed(attention.mean(K0 + h * E, head, run)) for E in directions])
            for h in (step, -step)
        )
        slopes.append((ahead - behind).T / (2 * step))
        seconds.append(V @ (ahead + behind - 2 * packed(at)) / (2 * step**2))
        slope = attention.moments(K0, head, run).jacobian
        second = attention.curvature(K0, head, np.diag(V), run)
        differences.append((slope - slopes[-1], second - seconds[-1]))
    for found, of in zip(zip(*differences, strict=True), (slopes, seconds), strict=True):
        error, size = np.std(found, axis=0, ddof=1) / RUNS**0.5, np.abs(np.mean(of, axis=0)).max()
        assert np.abs(np.mean(found, axis=0) / (error + 1e-4 * size)).max() < 5
        assert error.max() < 0.15 * size


def test_standard_errors_cover_other_seeds():
    net = network(transformer(32), 32)
    found = [ft.solve(net, K0, samples=512, seed=seed) for seed in range(12)]
    for name in ("kernels", "kernel_shift", "stream_covariance", "shares", "correlation_deviation"):
        values = np.array([getattr(s, name) for s in found])
        errors = np.array([getattr(s, f"{name}_error") for s in found])
        spread, error = values.std(0, ddof=1), np.sqrt((errors**2).mean(0))
        moving = error > 1e-12
        assert 0.6 < np.median(spread[moving] / error[moving]) < 1.5


def test_shares_and_correlations():
    net = network(transformer(32, **MLP), 32)
    s, both = (ft.solve(n, K0, samples=512) for n in (net, net.replace(parallel=True)))
    C = np.diagonal(s.residual_kernels[1:-1], axis1=1, axis2=2)
    K = np.diagonal(s.kernels[1:-1], axis1=1, axis2=2)
    np.testing.assert_allclose(s.shares[1:], C / K, rtol=1e-3)
    assert (s.attention_shares[2::2] == 0).all()
    np.testing.assert_allclose(s.attention_shares[1::2], s.shares[1::2], rtol=1e-12)
    # Attention reads the same beside an MLP in parallel, whose sum is larger.
    alone = ft.solve(net.replace(mlp=None), K0, samples=512)
    grown = np.diagonal(both.kernels[1] / alone.kernels[1])
    np.testing.assert_allclose(both.attention_shares[1] * grown, alone.shares[1], rtol=1e-3)


def test_the_required_width_is_that_of_heads_of_one_width():
    net = ft.TransformerNetwork(depth=2, heads=4, width=32)
    s = ft.solve(net.replace(width=-(-ft.required_width(net, K0, 0.05) // 8) * 8), K0)
    relative = np.diagonal(np.sqrt(s.kernel_variance[-1]) / s.kernels[-2]).max()
    assert abs(relative / 0.05 - 1) < 0.02


def test_files_and_tables(tmp_path):
    net = network(transformer(32, **ALL), 32)
    s = ft.solve(net, K0, samples=64)
    s.save(tmp_path / "transformer.npz")
    loaded = ft.load(tmp_path / "transformer.npz")
    assert loaded.network == net
    assert_same(loaded.kernels, s.kernels)
    assert_same(loaded.kernels_error, s.kernels_error)
    assert s.to_xarray().kernels.shape == (6, 3, 3)
    assert len(s.rows()) == 6 * 6
    assert net.replace(depth=3, width=64).mlp.width == 64


WRONG = {
    "heads must divide the width": {"heads": 5, "head_width": None},
    "grouped_heads must divide heads, got 3 for 8 heads": {"grouped_heads": 3},
    "value_bias_variance must be 0 where": {
        "value_weight_variance": 0.0,
        "value_bias_variance": 1.0,
    },
    "out_bias_variance must be": {"out_bias_variance": np.nan},
    "rotary needs heads of even width": {"rotary": 10.0, "head_width": 3},
    "branch_scale must be a number, two": {"branch_scale": [0.1, 0.2, 0.3]},
    "branch_scale must be finite": {"branch_scale": np.nan},
    "branch_scale must be >= 0": {"branch_scale": (0.1, -0.2)},
    "query_weight_variance must be >= 0": {"query_weight_variance": -1.0},
    "value_weight_variance must be finite": {"value_weight_variance": [np.nan, 1.0]},
    "causal must be True, False or a matrix": {"causal": "yes"},
    "causal must let every token see one": {"causal": [[False, False], [True, True]]},
    "mlp must not have width": {"mlp": {"width": 3}},
    "mlp must be a mapping": {"mlp": "gelu"},
    "unknown argument 'phi'": {"mlp": {"phi": "gelu"}},
    "parallel must be True or False": {"parallel": 1},
    "unknown argument 'head'": {"head": 8},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_parameters(message):
    own = {"depth": 2, "heads": 8, "width": 32}
    with pytest.raises((TypeError, ValueError), match=message):
        ft.TransformerNetwork(**own | WRONG[message])


def test_wrong_inputs():
    net = ft.TransformerNetwork(depth=2, heads=8, width=32)
    with pytest.raises(ValueError, match="rows for 2 sequences of T tokens each, got 3"):
        ft.solve(net.replace(sequences=2), K0)
    mask = replace(net, causal=np.tri(3, dtype=bool).tolist(), sequences=2)
    with pytest.raises(ValueError, match="matrix .T, T. for the T = 2 tokens of a sequence"):
        ft.simulate(mask, BOTH)
    with pytest.raises(ValueError, match="K0 must be finite"):
        ft.solve(net, K0 * np.nan)
    with pytest.raises(ValueError, match="positive semidefinite"):
        ft.solve(net, [[1, 2], [2, 1]])
    with pytest.raises(ValueError, match="samples must be an integer >= 16"):
        ft.solve(net, K0, samples=3)
    with pytest.raises(ValueError, match="depend linearly"):
        _ = ft.solve(net, np.ones((2, 2)), samples=64).kernel_shift
    with pytest.raises(ValueError, match="at most 31 tokens at width 32"):
        ft.simulate(net, np.eye(40))
    with pytest.raises(TypeError, match="order is not there for a Trans"):
        ft.solve(net, K0, order=2)
