"""Kernels and responses of `solve` against oracles, exact cases and identities."""

import inspect
import re
import warnings

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fieldtheory as ft
from tests.examples import K0_PAIR, K0_TRIPLE, moment, network, oracle, precise_oracle
from tests.oracles import exact, recursion
from tests.oracles.differences import derivative
from tests.rounding import assert_same
from tests.tables import slow

K0 = 0.4
NAMES = ["erf", "relu", "tanh", "linear"]
GAMMAS = [0.0, 0.7, 1.0, (0.9, 0.4, 1.0)]


def closed(name):
    average = {"erf": exact.erf_average, "relu": lambda *k: exact.relu_average(1, *k)}[name]
    return lambda *k: float(average(*k))


@pytest.mark.slow_but(15)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_input_against_the_recursion(name, gamma):
    net = network(3, name, gamma)
    solution = ft.solve(net, K0)
    C, K = recursion.kernels(oracle(net), K0, moment(name))
    np.testing.assert_allclose(solution.residual_kernels, C, rtol=1e-12)
    np.testing.assert_allclose(solution.kernels, K, rtol=1e-12)
    response = recursion.response(oracle(net), K0, moment(name))
    np.testing.assert_allclose(net.width * solution.G12, response, rtol=0, atol=3e-12)
    np.testing.assert_allclose(solution.residual_response, response[:-1, 0], rtol=0, atol=3e-12)
    assert solution.output_response == pytest.approx(response[-1, 0], rel=1e-11)
    assert solution.output_kernel == solution.kernels[-1]


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("K0", [K0_PAIR, K0_TRIPLE], ids=["pair", "triple"])
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_several_inputs_against_the_recursion(name, K0):
    net = network(2, name)
    solution, P = ft.solve(net, K0), len(K0)
    C, K = recursion.kernels(oracle(net), K0, closed(name))
    np.testing.assert_allclose(solution.output_kernel, K[-1], rtol=1e-12)
    np.testing.assert_allclose(solution.residual_kernels, C, rtol=1e-12)
    np.testing.assert_allclose(solution.kernels, K, rtol=1e-12)
    response = recursion.response(oracle(net), K0, closed(name))
    A2 = np.array(recursion.skip_matrix(oracle(net)), dtype=float) ** 2
    chi = np.einsum("lm,mpq->lpq", A2, response[:-1, :, 0, :])
    for p, (i, j) in enumerate(recursion.entries(P)):
        for a, b in ((i, j), (j, i)):
            diagonal = response[:, p, :, p]
            np.testing.assert_allclose(net.width * solution.G12[..., a, b], diagonal, atol=5e-12)
            np.testing.assert_allclose(
                solution.residual_response[:, a, b], diagonal[:-1, 0], atol=5e-12
            )
            assert solution.output_response[a, b] == pytest.approx(diagonal[-1, 0], abs=5e-12)
            np.testing.assert_allclose(solution.response[:, a, b], chi[:, p, p], atol=5e-12)
            expected = chi[:, p, [a, b, p]] if i != j else chi[:, p, [p, p, p]] * [0, 0, 1]
            np.testing.assert_allclose(solution.full_response[:, a, b], expected, atol=5e-12)


def test_against_thirty_digits():
    net = network(3)
    with mpmath.workdps(30):
        C, K = recursion.kernels(precise_oracle(net), mpf(K0), exact.erf_average)
        response = recursion.response(precise_oracle(net), mpf(K0), exact.erf_average)
    solution = ft.solve(net, K0)
    np.testing.assert_allclose(solution.residual_kernels, C.astype(float), rtol=1e-14)
    np.testing.assert_allclose(solution.kernels, K.astype(float), rtol=1e-14)
    np.testing.assert_allclose(net.width * solution.G12, response.astype(float), rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_response_is_the_derivative_of_the_kernels(name):
    net = network(3, name)
    slope = derivative(lambda k: ft.solve(net, k).kernels, K0, K0)
    s = ft.solve(net, K0)
    np.testing.assert_allclose(s.response, slope[:-1], rtol=1e-10)
    assert s.output_response == pytest.approx(slope[-1], rel=1e-10)


@pytest.mark.parametrize("name", ["erf", "relu", slow("tanh")])
def test_full_response_is_the_derivative_of_the_covariance(name):
    net, room = network(2, name), recursion.distance(K0_PAIR)
    full = ft.solve(net, K0_PAIR).full_response

    def moved(entries):
        def kernel(eps):
            step = np.zeros((2, 2))
            for entry in entries:
                step[entry] = eps
            return ft.solve(net, K0_PAIR + step).kernels[:-1, 0, 1]

        return derivative(kernel, 0.0, room)

    columns = [moved([(0, 0)]), moved([(1, 1)]), moved([(0, 1), (1, 0)])]
    np.testing.assert_allclose(full[:, 0, 1], np.transpose(columns), rtol=0, atol=1e-9)
    np.testing.assert_allclose(full[:, 1, 0], full[:, 0, 1][:, [1, 0, 2]], rtol=0, atol=0)


def test_without_branches_nothing_moves():
    net = network(3, gamma=1.0, branch_scale=0.0)
    s = ft.solve(net, K0)
    np.testing.assert_array_equal(s.kernels[:-1], K0)
    np.testing.assert_array_equal(s.residual_kernels[:-1], [K0, 0, 0, 0])
    np.testing.assert_array_equal(s.response, 1)
    tiny = ft.solve(net.replace(branch_scale=1e-5), K0)
    np.testing.assert_allclose(tiny.kernels, s.kernels, rtol=0, atol=1e-9)
    np.testing.assert_allclose(tiny.response, 1, rtol=0, atol=1e-9)
    assert np.any(tiny.response != 1)


SCALES = [0.0, 0.1, 0.7, 1.0]
LAYERS = [[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]]
BATCHES = [
    *((name, [[scale] for scale in SCALES], K0, (4,)) for name in ("branch_scale", "skip_scale")),
    ("branch_scale", [[layers] for layers in LAYERS], [0.1, 0.4], (2, 2)),
    (
        "branch_scale",
        [[0.3], [0.6], [0.9]],
        np.stack([K0_PAIR, 2 * K0_PAIR, K0_PAIR[::-1, ::-1]]),
        (3,),
    ),
]


@pytest.mark.parametrize("name, scales, K0, shape", BATCHES)
def test_a_batch_is_a_loop(name, scales, K0, shape):
    net, batch = network(3), ft.solve(network(3, **{name: scales}), K0)
    fields = ["kernels", "residual_kernels", "response", "residual_response", "output_response"]
    fields += ["full_response"] * (np.ndim(K0) > 1)
    scales = np.broadcast_to(np.asarray(scales), (*shape, np.shape(scales)[-1]))
    for index in np.ndindex(*shape):
        of_index = K0 if np.ndim(K0) == 0 else np.asarray(K0)[index[-1]]
        single = ft.solve(net.replace(**{name: scales[index]}), of_index)
        for field in fields:
            found = getattr(batch, field)
            assert found.shape == shape + np.shape(getattr(single, field))
            assert_same(found[index], getattr(single, field))


@pytest.mark.parametrize("name", ["erf", "relu"])
def test_inputs_are_independent_pairs(name):
    net = network(3, name)
    triple = ft.solve(net, K0_TRIPLE)
    for i in range(3):
        single = ft.solve(net, K0_TRIPLE[i, i])
        assert_same(triple.kernels[:, i, i], single.kernels)
        assert_same(triple.response[:, i, i], single.response)
        for j in range(i):
            pick = np.ix_([j, i], [j, i])
            pair = ft.solve(net, K0_TRIPLE[pick])
            for field in ("kernels", "residual_response", "full_response", "G12"):
                whole = getattr(triple, field)
                lead = (slice(None),) * (2 if field == "G12" else 1)
                np.testing.assert_allclose(
                    whole[(*lead, *pick)], getattr(pair, field), rtol=1e-14, atol=1e-17
                )


@pytest.mark.parametrize("name", ["erf", "relu", "tanh"])
def test_identical_inputs(name):
    s = ft.solve(network(3, name), np.full((2, 2), K0))
    total = s.full_response[:, 0, 1].sum(axis=-1)
    np.testing.assert_allclose(total, s.response[:, 0, 0], rtol=1e-12)


def test_opposite_inputs_of_an_odd_network():
    s = ft.solve(network(3, bias_variance=0.0, readout_bias_variance=0.0), K0 * (2 * np.eye(2) - 1))
    np.testing.assert_allclose(s.kernels[:, 0, 1], -s.kernels[:, 0, 0], rtol=1e-13)


def test_matrix_of_one_input():
    matrix, scalar = ft.solve(network(2), [[K0]]), ft.solve(network(2), K0)
    assert_same(matrix.kernels[:, 0, 0], scalar.kernels)
    assert_same(matrix.G12[..., 0, 0], scalar.G12)
    assert matrix.inputs == scalar.inputs == 1


@pytest.mark.parametrize("name", NAMES)
def test_vanishing_input(name):
    net = ft.ResidualNetwork(depth=2, activation=name, bias_variance=0.0)
    s = ft.solve(net, 0.0)
    np.testing.assert_array_equal(s.kernels, 0)
    np.testing.assert_array_equal(s.G11, 0)
    slope = {"erf": 4 / np.pi, "relu": 0.5}.get(name, 1.0)
    np.testing.assert_allclose(s.response, (1 + 1.25 * slope) ** np.arange(3), rtol=1e-12)


def test_fields_are_computed_once():
    s = ft.solve(network(2), K0)
    assert s.kernels is s.kernels
    assert s.G11 is s.G11
    assert "depth=2" in repr(s) and "inputs=1" in repr(s)


bad_kernels = pytest.mark.parametrize(
    "kernel, error, message",
    [
        (np.nan, ValueError, "K0 must be finite, got nan"),
        ([0.1, np.inf], ValueError, "K0 must be finite, got inf"),
        (-0.1, ValueError, "K0 must be a variance >= 0, got -0.1"),
        ([[1.0, 0.2], [0.3, 1.0]], ValueError, "K0 must be symmetric"),
        (
            [[1.0, 2.0], [2.0, 1.0]],
            ValueError,
            "K0 must be positive semidefinite, got eigenvalue -1",
        ),
        ([[-1.0, 0.0], [0.0, 1.0]], ValueError, "K0 must be positive semidefinite"),
        ([[1.0, 0.1, 0.2], [0.1, 1.0, 0.3]], ValueError, r"square \(P, P\), got shape \(2, 3\)"),
        ([], ValueError, "K0 must not be empty"),
        ("0.1x", TypeError, "K0 must be a real number or an array of them, got '0.1x'"),
        (1j, TypeError, "K0 must be a real number"),
        (True, TypeError, "K0 must be a real number"),
        ([[0.1], [0.2, 0.3]], TypeError, "K0 must be a real number or an array"),
    ],
)


@bad_kernels
def test_bad_kernels(kernel, error, message):
    with pytest.raises(error, match=message) as caught:
        ft.solve(network(2), kernel)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("chi", "Solution has no 'chi': did you mean response?"),
        ("K", "Solution has no 'K': did you mean kernels?"),
        ("ntk", "did you mean output_tangent_kernel?"),
        ("respons", "did you mean response?"),
        ("colour", "Solution has no 'colour'; field must be one of residual_kernels"),
    ],
)
def test_fields_by_another_name(typed, words):
    with pytest.raises(AttributeError, match=re.escape(words)):
        getattr(ft.solve(ft.ResidualNetwork(depth=1), 0.05), typed)


def test_bad_network():
    with pytest.raises(TypeError, match="network must be a ResidualNetwork or of .*, got 3"):
        ft.solve(3, K0)


@pytest.mark.parametrize("order", [0, 3, -1, 2.0, "2", True, None, [1, 2], np.array([1, 2])])
def test_bad_order(order):
    with pytest.raises(ValueError, match="order must be 1 or 2, the highest power of 1/N, got"):
        ft.solve(network(2), K0, order=order)


def test_an_order_of_numpy():
    assert ft.solve(network(2), K0, order=np.int64(2)).mean_shift_2.shape == (4,)


def test_response_to_a_variance_diverges_at_a_kink():
    with pytest.raises(ValueError, match="K0 must have positive variances: .* of relu diverges"):
        _ = ft.solve(network(2, "relu"), [[1.0, 0.0], [0.0, 0.0]]).full_response


@pytest.mark.parametrize(
    "kernel, field, message",
    [
        (1e300, "kernels", "the kernel exceeds the range of float64 in layer 1"),
        (1e300 * np.eye(2), "kernels", "the kernel exceeds"),
        (1e180, "G11", "the covariance of the kernels exceeds the range of float64 in layer"),
    ],
)
def test_overflow(kernel, field, message):
    net = ft.ResidualNetwork(depth=3, activation="relu", weight_variance=1e10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OverflowError, match=message):
            getattr(ft.solve(net, kernel), field)


def test_overflow_of_the_response_alone():
    """A tiny input of a saturating network: the kernel stays finite, its derivative does not."""
    net = ft.ResidualNetwork(depth=900, weight_variance=100.0, bias_variance=0.0, skip_scale=1.3)
    s = ft.solve(net, 1e-300)
    assert np.isfinite(s.kernels).all()
    with pytest.raises(OverflowError, match="the response exceeds the range of float64 in layer"):
        _ = s.response


def forward(activation, depth, width, weight):
    """Without biases, so that φ that are powers keep powers."""
    parameters = {"weight_variance": weight, "bias_variance": 0.0}
    return ft.FeedForwardNetwork(depth=depth, activation=activation, width=width, **parameters)


OF_SPREAD = "G11", "kernel_variance", "four_point", "output_kurtosis"
OF_SHIFT = "mean_shift", "kernel_shift"
# ⟨C⟩ of products of matrices is exact, Var C = 2 l C²/N; C = a K is that of one input, and an entry
# of two that are uncorrelated has half of it. Signs have C = 1, and Var C = 1/N where uncorrelated.
# Of h² and h³ C ~ K² and K³, Var K/K² = 96/9N and 10170/225N, and F'' Var K/2 is 1 and 3 of them.
STACK = ft.BlockNetwork(
    depth=4, width=24, expansion=0.25, activation="squared_relu", gated=True, normalization=None
)
DOUBTFUL = [
    (forward("linear", 3, 3, 1.0), 1.0, OF_SPREAD, "standard deviation", 3, "", 2**0.5),
    (forward("linear", 3, 3, 1.0), np.eye(2), OF_SPREAD, "standard deviation", 3, "(0, 0)", 2**0.5),
    (forward("sign", 1, 2, 1.0), np.eye(2), OF_SPREAD, "standard deviation", 1, "(0, 1)", 0.5**0.5),
    (forward("h**2", 1, 20, 1.0), 1.0, OF_SHIFT, "shift of the mean", 2, "", 96 / 180),
    (forward("h**3", 1, 200, 0.01), 1.0, OF_SPREAD, "term F'' Var K/2", 2, "", 0.678),
    (STACK, 1.0, OF_SHIFT, "shift of the mean", 4, "", 1.19294e12 / 1.0303e9),
    (STACK, 1.0, (*OF_SPREAD, "stream_covariance"), "standard deviation", 4, "", 49.8),
]


@pytest.mark.parametrize("net, kernel, fields, what, layer, entry, size", DOUBTFUL)
def test_fields_of_order_1_doubt_it_where_it_is_not_small(
    net, kernel, fields, what, layer, entry, size
):
    for name in fields:
        s = ft.solve(net, kernel)
        with pytest.warns(ft.ValidityWarning) as caught:
            for again in (name, *fields):
                getattr(s, again)
        (said,) = (str(warning.message) for warning in caught)
        of = f" of the inputs {entry}" if entry else ""
        assert said.startswith(f"the {what} of K^({layer}){of} is {size:.2g} times "), name
        assert said.endswith(f"at depth {net.depth} and width {net.width}: 1/N is not small")


@pytest.mark.parametrize(
    "net, kernel",
    [
        (network(3, "relu", 1.0, width=500), K0),
        # C^(l) fluctuates by its size, the stream does not.
        (ft.ResidualNetwork(depth=3, activation="relu", branch_scale=0.1, width=2), 1.0),
        (ft.ResidualNetwork(depth=3, branch_scale=0.1, width=2), [[1.0, 0.3], [0.3, 1.0]]),
        (ft.BlockNetwork(depth=12, gated=True, activation="silu", width=64), 1.0),
        (ft.BlockNetwork(depth=3, width=64), [[1.0, 0.3], [0.3, 1.0]]),
    ],
)
def test_no_doubt_where_it_is_small(net, kernel):
    s = ft.solve(net, kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (*OF_SHIFT, *OF_SPREAD):
            getattr(s, name)


@pytest.mark.parametrize("field", ["G11", "kernel_variance"])
def test_the_warning_names_the_line_of_the_caller(field):
    s = ft.solve(network(3, "relu", 1.0, width=3), K0)
    with pytest.warns(ft.ValidityWarning) as caught:
        line = inspect.currentframe().f_lineno + 1
        getattr(s, field)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]


def test_gram_matrices_of_the_stream_fluctuate_more_than_kernels():
    """Var R^(l) of R = (1/N) Σ_i h_i h_i against explicit networks; that of blocks."""
    N, samples, rng = 40, 20_000, np.random.default_rng(0)
    K0 = np.array([[0.6, 0.2], [0.2, 0.5]])
    net = ft.ResidualNetwork(depth=2, activation="tanh", width=N, branch_scale=0.8, skip_scale=0.9)
    h = np.linalg.cholesky(K0) @ rng.standard_normal((samples, 2, N))
    R = [h @ np.swapaxes(h, 1, 2) / N]
    for _ in range(net.depth):
        phi = np.tanh(h)
        C = 0.64 * (1.25 * phi @ np.swapaxes(phi, 1, 2) / N + 0.05)
        h = 0.9 * h + np.linalg.cholesky(C) @ rng.standard_normal(h.shape)
        R.append(h @ np.swapaxes(h, 1, 2) / N)
    variance = np.var(R, axis=1)
    centred = np.array(R) - np.mean(R, axis=1, keepdims=True)
    error = np.sqrt(np.var(centred**2, axis=1) / samples)
    theory = ft.solve(net, K0).stream_variance
    # What is left out is of order 1/N².
    assert (np.abs(variance - theory) < 4 * error + theory / N).all()
    assert (np.abs(variance - 0.9 * theory) > 4 * error + theory / N).any()
    blocks = ft.solve(ft.BlockNetwork(depth=3, normalization="layer"), K0)
    np.testing.assert_allclose(blocks.stream_variance, blocks.kernel_variance, rtol=1e-12)
