"""`solve` of networks of blocks: other routes, exact cases, limits."""

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.criticality import closure_G11, component_kernels, susceptibilities
from fieldtheory.networks.activation_text import activation_from_text
from tests.oracles import block_networks as oracle

K0 = np.array([[1.0, 0.3, -0.2], [0.3, 0.5, 0.1], [-0.2, 0.1, 0.8]])
PHI = {
    "tanh": np.tanh,
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "relu": lambda x: np.maximum(x, 0),
    "max(x, 0) - max(x - 1, 0)/2": lambda x: np.maximum(x, 0) - np.maximum(x - 1, 0) / 2,
    "linear": lambda x: x,
}
VARIANCES = {
    "inner_weight_variance": 1.5,
    "outer_weight_variance": 1.3,
    "inner_bias_variance": 0.1,
    "outer_bias_variance": 0.05,
    "readout_weight_variance": 1.1,
    "readout_bias_variance": 0.2,
}


def both(activation="tanh", *, depth=3, rho=0.7, gamma=0.9, gate=1.2, **options):
    """The network, and what the oracle calls it."""
    net = ft.BlockNetwork(
        depth=depth,
        activation=activation,
        branch_scale=rho,
        skip_scale=gamma,
        **VARIANCES,
        **({"gate_weight_variance": gate} if options.get("gated") else {}),
        **options,
    )
    names = ("inner", "outer", "inner_bias", "outer_bias", "out", "out_bias")
    variances = dict(zip(names, VARIANCES.values(), strict=True))
    written = oracle.Block(
        depth,
        PHI[activation],
        rho,
        gamma,
        net.normalization,
        net.norm_position == "post",
        net.epsilon,
        net.gated,
        gate=gate,
        **variances,
    )
    return net, written


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
@pytest.mark.parametrize("norm", ["layer", "rms", None])
@pytest.mark.parametrize("gated", [False, True])
def test_infinite_width(activation, norm, gated):
    net, written = both(activation, normalization=norm, gated=gated, epsilon=0.1)
    expected = oracle.infinite_width(written, K0)
    np.testing.assert_allclose(ft.solve(net, K0).kernels, expected, rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.9, 0.0])
@pytest.mark.parametrize("expansion", [0.5, 2.0])
def test_linear_networks_are_products_of_wishart_matrices(expansion, gamma):
    options = {"normalization": None, "expansion": expansion, "width": 10**6}
    net, written = both("linear", gamma=gamma, **options)
    s = ft.solve(net, 0.8)
    N = net.width
    R, C = oracle.linear_moments(written, 0.8, N, net.hidden_width)
    np.testing.assert_allclose(s.kernels, [*R[:, 0], C[-1, 0]], rtol=1e-12)
    np.testing.assert_allclose(s.kernel_variance, R[:, 1], rtol=1e-4)
    np.testing.assert_allclose(np.diagonal(s.G11)[1:], C[:, 1], rtol=1e-4)
    np.testing.assert_allclose(N * s.mean_shift, 0, atol=1e-12)


# Order 1/N of networks of 24 and 48 units: name, samples, how the networks differ.
FINITE = [
    ("tanh", 2, {"normalization": None, "expansion": 2.0}),
    ("tanh", 2, {"epsilon": 0.01, "expansion": 2.0}),
    ("gelu", 3, {"expansion": 0.5}),
    ("gelu", 1, {"expansion": 4.0, "gated": True}),
    ("gelu", 2, {"expansion": 1.0, "gated": True, "epsilon": 0.1}),
    ("relu", 2, {"expansion": 2.0, "normalization": "layer"}),
    ("relu", 1, {"expansion": 0.5, "norm_position": "post", "normalization": "layer"}),
    ("max(x, 0) - max(x - 1, 0)/2", 2, {"expansion": 2.0, "norm_position": "post", "epsilon": 0.1}),
    ("tanh", 3, {"expansion": 1.0, "norm_position": "post", "gated": True}),
    ("max(x, 0) - max(x - 1, 0)/2", 3, {"expansion": 1.0, "normalization": None}),
]


BATCHES = 40


def extrapolated(s, written, inputs, samples, seed, widths=(24, 48)):
    """Name, mean and standard error of what is extrapolated from two widths, in turn."""
    kernel = K0[:inputs, :inputs]
    alpha, beta = np.triu_indices(inputs)
    weights = np.array([-widths[0], widths[1]]) / (widths[1] - widths[0])
    estimates = []
    for width in widths:
        hidden = round(s.network.expansion * width)
        C, R, fourth = oracle.drawn(written, kernel, width, hidden, samples, seed + width)
        batches = []
        for some in np.array_split(np.arange(samples), BATCHES):
            c, r = C[some][..., alpha, beta], R[some][..., alpha, beta]
            f = fourth[some].mean(axis=0)[:, alpha, beta][..., alpha, beta]
            second = np.einsum("slp,slq->lpq", r, r) / len(some)
            different = (width * second - f) / (width - 1)
            mean, moved = r.mean(axis=0), covariance(r)
            layers = np.arange(len(mean))
            # Without bias.
            square = mean[:, :, None] * mean[:, None] - moved[layers, layers] / len(some)
            batches.append(
                [
                    width * (c.mean(axis=0) - s.C),
                    width * (mean - s.R),
                    width * covariance(c),
                    width * moved,
                    width * (different - square),
                ]
            )
        estimates.append([np.array(each) for each in zip(*batches, strict=True)])
    names = ("mean_shift", "kernel_shift", "G11", "stream_covariance", "four_point")
    for name, *each in zip(names, *estimates, strict=True):
        parts = [*zip(weights, each, strict=True)]
        mean = sum(w * part.mean(axis=0) for w, part in parts)
        square = sum((w * part.std(axis=0, ddof=1)) ** 2 for w, part in parts)
        yield name, mean, np.sqrt(square / BATCHES)


def deviations(s, measured):
    """z-scores of the values that fluctuate, by the names of fields."""
    z = {}
    for (name, mean, error), theory in zip(measured, s.theory, strict=True):
        moving = error > 1e-12 * s.N
        np.testing.assert_allclose(theory[~moving], mean[~moving], atol=1e-9 * s.N)
        z[name] = np.abs(mean - theory)[moving] / error[moving]
    return z


def covariance(x):
    """Covariances of layers and pairs, (k, l, p, q), of samples (n, L, p)."""
    x = x - x.mean(axis=0)
    return np.einsum("skp,slq->klpq", x, x) / (len(x) - 1)


class Scaled:
    """The theory with N times its corrections, in pairs of inputs."""

    def __init__(self, net, inputs):
        s = ft.solve(net, K0[:inputs, :inputs])
        at = np.triu_indices(inputs)
        N = self.N = net.width
        self.network = net
        self.C = s.residual_kernels[:, *at]
        self.R = s.kernels[:-1, *at]
        self.theory = [
            N * s.mean_shift[:, *at],
            N * s.kernel_shift[:-1, *at],
            N * s.G11,
            N * s.stream_covariance,
            s.four_point,
        ]


@pytest.mark.parametrize(("activation", "inputs", "options"), FINITE[1:3:2])
def test_finite_networks(activation, inputs, options):
    net, written = both(activation, depth=2, **options)
    theory = Scaled(net, inputs)
    for name, z in deviations(theory, [*extrapolated(theory, written, inputs, 1200, 1)]).items():
        assert z.max() < 4.5, (name, z.max())


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "inputs", "options"), FINITE)
def test_many_finite_networks(activation, inputs, options):
    net, written = both(activation, **options)
    theory = Scaled(net, inputs)
    measured = [*extrapolated(theory, written, inputs, 12000, 7)]
    for name, z in deviations(theory, measured).items():
        assert z.max(initial=0.0) < 4.5, (name, z.max())
        assert (z < 3).sum() >= 0.98 * z.size, (name, (z < 3).mean())
    # Errors of 10 % in what layers add, or of 25 % in all fluctuations, are seen.
    theory.theory[0][1:-1] += 0.1 * 24 * theory.C[1:-1]
    theory.theory[2] = 1.25 * theory.theory[2]
    z = deviations(theory, measured)
    assert z["mean_shift"].max() > 5
    assert z["G11"].max() > 4


def test_limits():
    wide, _ = both(expansion=10**5, width=100)
    # Many hidden units leave what K0 moves: a Wishart matrix of N units; fewer add 1/M.
    one = ft.solve(wide.replace(normalization=None), 1.0)
    start = 2 / wide.width * one.residual_response[1] ** 2
    np.testing.assert_allclose(one.G11[1, 1], start, rtol=1e-3)
    s, t, u = (ft.solve(wide.replace(expansion=each), K0).G11 for each in (10**5, 1.0, 2.0))
    np.testing.assert_allclose(t - s, 2 * (u - s), rtol=1e-4, atol=1e-9)
    assert (np.diagonal(np.diagonal(t - s))[1:-1] > 1e-3 * np.diagonal(np.diagonal(s))[1:-1]).all()
    # Without branches, a Wishart matrix that stays.
    still = ft.solve(wide.replace(branch_scale=0.0, skip_scale=1.0), K0)
    V = still.stream_covariance * wide.width
    alpha, beta = np.triu_indices(3)
    wick = K0[alpha[:, None], alpha] * K0[beta[:, None], beta]
    wick = wick + K0[alpha[:, None], beta] * K0[beta[:, None], alpha]
    np.testing.assert_allclose(V, np.broadcast_to(wick, V.shape), rtol=1e-12)
    np.testing.assert_allclose(still.kernel_shift[:-1], 0, atol=1e-15)
    np.testing.assert_allclose(still.four_point, 0, atol=1e-12)
    # A large ε is no norm, with weights 1/ε.
    epsilon = 1e9
    net, _ = both(epsilon=epsilon)
    scaled = net.replace(inner_weight_variance=1.5 * epsilon, readout_weight_variance=1.1 * epsilon)
    plain = ft.solve(net.replace(normalization=None, epsilon=0.0), K0)
    normed = ft.solve(scaled, K0)
    for name in ("kernels", "response", "G11", "mean_shift", "tangent_kernels"):
        np.testing.assert_allclose(
            getattr(normed, name), getattr(plain, name), rtol=1e-6, atol=1e-9
        )


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    "options", [{}, {"gated": True}, {"norm_position": "post", "epsilon": 0.1}]
)
def test_one_input_and_batches(options):
    net, _ = both(**options)
    whole, one = ft.solve(net, K0), ft.solve(net, K0[0, 0])
    names = ("kernels", "response", "G12", "mean_shift", "kernel_variance", "tangent_kernels")
    for name in names:
        value = getattr(whole, name)[..., 0, 0]
        np.testing.assert_allclose(getattr(one, name), value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.G11, whole.G11[..., 0, 0], rtol=1e-9, atol=1e-14)
    batch = ft.solve(net.replace(branch_scale=[[0.7], [0.2]]), K0)
    alone = ft.solve(net.replace(branch_scale=0.2), K0)
    for name in ("kernels", "residual_kernels", "full_response", "output_response"):
        np.testing.assert_allclose(getattr(batch, name)[1], getattr(alone, name), rtol=1e-13)
        np.testing.assert_allclose(getattr(batch, name)[0], getattr(whole, name), rtol=1e-13)
    variances = ft.solve(net, [K0[0, 0], 0.2])
    np.testing.assert_allclose(variances.kernels[0], one.kernels, rtol=1e-13)


@pytest.mark.slow_but(0, 2, 3, 4, 5)
@pytest.mark.parametrize("activation", ["gelu", "relu"])
@pytest.mark.parametrize(
    "options", [{}, {"gated": True}, {"norm_position": "post", "epsilon": 0.1}]
)
def test_responses_are_derivatives(activation, options):
    net, _ = both(activation, **options)
    s, step = ft.solve(net, K0), 1e-5
    for entry, source in (((0, 1), 2), ((0, 0), 0), ((1, 1), 1)):
        change = np.zeros((3, 3))
        change[entry] = change[entry[::-1]] = step
        up, down = (ft.solve(net, K0 + sign * change).kernels for sign in (1, -1))
        slope = (up - down)[:, 0, 1] / (2 * step)
        np.testing.assert_allclose(s.full_response[:, 0, 1, source], slope[:-1], atol=1e-9)
        own = (up - down)[:, *entry] / (2 * step)
        np.testing.assert_allclose(s.response[:, *entry], own[:-1], atol=1e-9)
        np.testing.assert_allclose(s.output_response[entry], own[-1], atol=1e-9)
    np.testing.assert_allclose(s.G12[:-1, 0] * net.width, s.residual_response, rtol=1e-12)
    # The order 1/N, of two inputs alone.
    s, step = ft.solve(net, K0[:2, :2]), 2e-3
    for entry in ((0, 1), (1, 1)):
        change = np.zeros((2, 2))
        change[entry] = change[entry[::-1]] = step
        moved = [ft.solve(net, s.input_kernel + x * change) for x in (1, -1, 2, -2)]
        for name, expected in (
            ("kernel_shift", [*s.response_shift, s.output_response_shift]),
            ("mean_shift", [*s.residual_response_shift, s.output_response_shift]),
        ):
            up, down, more, less = (getattr(each, name)[:, *entry] for each in moved)
            slope = (8 * (up - down) - (more - less)) / (12 * step)
            np.testing.assert_allclose(
                np.array(expected)[:, *entry], slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max()
            )


def nearly_parallel(name, distance):
    """Two inputs with the correlation 1 − distance in a block whose inner weights are random."""
    net = ft.BlockNetwork(
        depth=1,
        activation=activation_from_text(name),
        outer_weight_variance=1,
        width=500,
        normalization=None,
    )
    return ft.solve(net, np.array([[0.7, 0.7 - 0.7 * distance], [0.7 - 0.7 * distance, 0.7]]))


@pytest.mark.parametrize(("distance", "error"), [(1e-2, 1e-11), (1e-4, 1e-9), (1e-6, 1e-7)])
def test_jumps_of_nearly_parallel_inputs(distance, error):
    """Given the weights, ⟨sign sign⟩ is (2/π) arcsin c at every width: there is no shift.

    C fluctuates by its hidden units, 1 − C² each, and by N Var c = (1 − c²)² of the stream.
    """
    s = nearly_parallel("sign", distance)
    c = s.kernels[0, 0, 1] / 0.7
    assert np.abs(500 * s.mean_shift[1]).max() < error
    hidden = s.network.width / s.network.hidden_width
    slope = 2 / np.pi / np.sqrt((1 - c) * (1 + c))
    variance = hidden * (1 - (2 / np.pi * np.arcsin(c)) ** 2) + (slope * (1 - c) * (1 + c)) ** 2
    assert 500 * s.G11[1, 1, 1, 1] == pytest.approx(variance, abs=error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ft.BlockNetwork(depth=2, epsilon=-1), "epsilon must be .*got -1"),
        (lambda: ft.BlockNetwork(depth=2, normalization="batch"), "normalization must be"),
        (lambda: ft.BlockNetwork(depth=2, norm_position="mid"), "norm_position must be"),
        (
            lambda: ft.BlockNetwork(depth=2, width=10, expansion=0.33),
            "whole number of hidden units",
        ),
        (lambda: ft.BlockNetwork(depth=2, gate_weight_variance=1.0), "left out without a gate"),
        (
            lambda: ft.BlockNetwork(depth=2, outer_weight_variance=-1.0),
            "outer_weight_variance must",
        ),
        (lambda: ft.BlockNetwork(depth=2, branch_scale=[1, 2, 3]), "branch_scale must"),
        (lambda: ft.solve(ft.BlockNetwork(depth=2), 0.0).kernels, "positive variances"),
        (
            lambda: (
                ft.solve(ft.BlockNetwork(depth=2, activation="relu"), np.ones((2, 2))).mean_shift
            ),
            "no parallel inputs",
        ),
        *(
            (lambda d=d, f=f: getattr(nearly_parallel("sign", d), f), "no nearly parallel inputs")
            for d, f in [(1e-12, "mean_shift"), (1e-14, "four_point"), (0.0, "G11")]
        ),
        (lambda: nearly_parallel("heaviside(h)+tanh(h)", 1e-12).kernel_shift, "leaves an error of"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_tangent_kernels_of_kinds_of_parameters():
    net, _ = both(gated=True, epsilon=0.1)
    kinds = net.trained
    each = [
        ft.tangent_kernels(net, K0, dict.fromkeys(kinds, 0.0) | {kind: 1.0}).tangent_kernels
        for kind in kinds
    ]
    s = ft.solve(net, K0)
    np.testing.assert_allclose(sum(each), s.tangent_kernels, rtol=1e-12)
    readout = each[kinds.index("readout_weight")] + each[kinds.index("readout_bias")]
    np.testing.assert_allclose(readout[-1], s.output_kernel, rtol=1e-12)
    with pytest.raises(ValueError, match="rates must be one of .*got 'inner'"):
        ft.tangent_kernels(net, K0, {"inner": 0.0})


X = np.array([[1.0, 0.4, -0.3], [0.2, -0.8, 0.9]])


@pytest.mark.parametrize(
    "options",
    [
        {"gated": True, "epsilon": 0.1},
        {"norm_position": "post", "normalization": "layer", "epsilon": 0.1},
        {"normalization": None},
    ],
    ids=str,
)
def test_parts_of_the_tangent_kernel_against_gradients(options):
    """Those of one output of wide networks with explicit weights, in both parametrisations."""
    net, written = both(depth=2, **options)
    net = net.replace(
        width=300, expansion=2.0, input_dim=3, readin_weight_variance=1.2, readin_bias_variance=0.3
    )
    K, fans = ft.input_kernel(X, net), {"readin": 3, "outer": net.hidden_width}
    drawn = [
        oracle.squared_gradients(
            written, lambda h: 1 - np.tanh(h) ** 2, X, (1.2, 0.3), 300, net.hidden_width, seed
        )
        for seed in range(60)
    ]
    for parametrization in ("standard", "ntk"):
        parts = ft.tangent_kernels(net, K, parametrization=parametrization).parts
        seen = []
        for kind, theory in zip(net.trained, parts, strict=True):
            each, scale = np.array([found[kind] for found in drawn]), 1.0
            if parametrization == "ntk":
                scale = net.parameters[f"{kind}_variance"]
                place, _, what = kind.rpartition("_")
                scale = scale / (fans.get(place, 300) if what == "weight" else 1)
            mean, error = scale * each.mean(axis=0), scale * each.std(axis=0) / len(each) ** 0.5
            # With what is left of order 1/N.
            allowed = 4 * error + 0.02 * np.abs(theory).max() + 1e-12
            assert (np.abs(mean - theory) < allowed).all(), kind
            seen.append((np.abs(1.15 * theory - mean) > allowed).any())
        assert all(seen)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.1},
        {"normalization": "layer", "gated": True},
        {"norm_position": "post", "epsilon": 0.1},
        {"normalization": None, "activation": "relu"},
    ],
    ids=str,
)
@pytest.mark.parametrize("one_norm", [True, False])
def test_kernels_as_functions_of_inputs(options, one_norm):
    net = both(**options)[0].replace(input_dim=3)
    rows = np.random.default_rng(2).normal(size=(5, 3))
    if one_norm:
        rows *= np.sqrt(3 / (rows**2).sum(axis=1, keepdims=True))
    s = ft.solve(net, ft.input_kernel(rows, net))
    for quantity, layer, expected in (
        ("output_kernel", None, s.output_kernel),
        ("output_response", None, s.output_response),
        ("tangent_kernel", None, s.output_tangent_kernel),
        ("kernel", 2, s.kernels[2]),
        ("response", 2, s.response[2]),
    ):
        k = ft.kernel(net, quantity, layer)
        close = {"rtol": 1e-10, "atol": 1e-12 * np.abs(expected).max()}
        np.testing.assert_allclose(k(rows), expected, **close)
        np.testing.assert_allclose(k(rows[:2], rows[2:]), expected[:2, 2:], **close)
        np.testing.assert_allclose(k.diagonal(rows), np.diagonal(expected), **close)


def test_logarithms_and_conventions():
    net, _ = both(epsilon=0.1)
    s, other = ft.solve(net, K0), ft.solve(net, K0, convention="F25")
    for name in ("kernels", "response", "tangent_kernels"):
        values = getattr(s, name)
        np.testing.assert_allclose(getattr(s, f"log_{name}"), np.log(np.abs(values)), rtol=1e-14)
    np.testing.assert_array_equal(s.tangent_signs, np.sign(s.tangent_kernels))
    size = net.width / net.input_dim
    for name in ("residual_response", "response", "output_response", "response_shift"):
        np.testing.assert_allclose(getattr(other, name), size * getattr(s, name), rtol=1e-12)


def test_shares_and_parts_of_the_tangent_kernel():
    """ReLU and a norm: K grows by ρ² a block, and parts telescope to 2 ρ²/K, half of it each."""
    net = ft.BlockNetwork(depth=6, activation="relu", branch_scale=0.7)
    K = 1 + 0.49 * np.arange(7)
    np.testing.assert_allclose(ft.solve(net, 1.0).shares, [1, *0.49 / K[1:]], rtol=1e-12)
    theta = ft.tangent_kernels(net, 1.0, {"inner_weight": 3.0})
    parts = dict(zip(net.trained, theta.parts, strict=True))
    np.testing.assert_allclose(parts["outer_weight"][1:-1], 0.49 / K[1:], rtol=1e-12)
    np.testing.assert_allclose(parts["inner_weight"][1:-1], 3 * 0.49 / K[1:], rtol=1e-12)
    assert parts["readin_weight"][0] == pytest.approx(1) and parts["readout_weight"][-1] == 1
    assert theta.parts.sum() == pytest.approx(theta.output_tangent_kernel, rel=1e-13)


@pytest.mark.parametrize("gamma", [0.0, 0.6])
def test_the_scale_that_keeps_a_variance(gamma):
    """tanh without a norm by Gauss-Hermite quadrature; ReLU behind a norm exactly."""
    z, weights = np.polynomial.hermite_e.hermegauss(200)
    K, s2 = 0.8, 1.5
    h, weights = z * (s2 * K) ** 0.5, weights / weights.sum()
    slope = 1 - np.tanh(h) ** 2
    square = weights @ np.tanh(h) ** 2
    common = {"depth": 1, "skip_scale": gamma, "inner_weight_variance": s2}
    net = ft.BlockNetwork(
        activation="tanh", normalization=None, outer_weight_variance=1.3, **common
    )
    found = ft.critical_block(net, K)
    rho = ((1 - gamma**2) * K / (1.3 * square)) ** 0.5
    moved = weights @ (slope**2 - 2 * np.tanh(h) ** 2 * slope)
    expected = [rho, *(gamma**2 + rho**2 * 1.3 * s2 * x for x in (moved, weights @ slope**2))]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    relu = ft.critical_block(ft.BlockNetwork(activation="relu", **common), K)
    np.testing.assert_allclose(relu, [((1 - gamma**2) * K) ** 0.5, gamma**2, 1], rtol=1e-12)
    # The same layers of one matrix, of which h is the signal.
    one = {"depth": 1, "skip_scale": gamma, "weight_variance": 1.3, "bias_variance": 0.0}
    found = ft.critical_block(ft.ResidualNetwork(activation="tanh", **one), s2 * K)
    np.testing.assert_allclose(found, [expected[0] * s2**0.5, *expected[1:]], rtol=1e-9)
    # A norm behind the sum forgets the variance.
    post = ft.BlockNetwork(activation="relu", norm_position="post", **common)
    np.testing.assert_allclose(susceptibilities(post, [1.0, 3.0]), [[0, 0], [1, 1]], atol=1e-12)


PAIR, LABELS = np.array([[1.0, 0.3], [0.3, 1.0]]), [1.0, -1.0]
ONLY = [
    lambda net: ft.derive(net).latex("tangent_kernel"),
    lambda net: ft.derive(net).diagrams(),
    lambda net: ft.derive(net).correction(),
    lambda net: ft.simulate(net, 1.0, samples=20, variance_reduction="control_variate"),
    lambda net: ft.optimal_scaling(net, PAIR, "saturation"),
    lambda net: ft.optimal_scaling([net, net], PAIR),
    ft.optimal_output_variance,
    lambda net: ft.posterior(net, PAIR, LABELS, noise_variance=0.1, samples=10000),
    lambda net: ft.covariance_with(ft.solve(net, PAIR), PAIR, samples=100),
    lambda net: component_kernels(net, [1, 0.1, 0.1]),
    lambda net: closure_G11(net, 1.0),
]


@pytest.mark.parametrize("call", ONLY)
def test_what_blocks_do_not_have_is_said_in_one_way(call):
    words = "is not there for a BlockNetwork, because"
    with pytest.raises(TypeError, match=words):
        call(ft.BlockNetwork(depth=2, width=20))
