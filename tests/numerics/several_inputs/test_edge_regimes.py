"""Inputs at the edges: parallel, opposite, equal, zero, wide, narrow, many, and small branches.

Most hold against other inputs of the same network that know the answer, see `CASES`.
"""

import tracemalloc
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.networks.activation_text import activation_from_text
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.numerics.memory import memory_available
from fieldtheory.numerics.symmetric_matrices import positions
from tests.numerics.pair_examples import STEPPED, THREE, TWO, network, of_pairs
from tests.oracles.several_inputs import kinked_nodes
from tests.tables import crossed, slow

NO_BIAS = {"bias_variance": 0.0, "readout_bias_variance": 0.0}
ZEROS = np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 0.11], [0.0, 0.11, 0.2]])
# Strongly correlated and wide ones.
APART = np.array([[2.0, 1.96, -0.5], [1.96, 2.1, -0.6], [-0.5, -0.6, 8.0]])
EQUAL = np.array([[0.5, 0.15], [0.15, 0.5]])
UNEQUAL = np.array([[0.5, 0.15], [0.15, 0.4]])
OPPOSED = np.array([[0.5, -0.2], [-0.2, 0.3]])


def two(x, y, c):
    K = c * np.sqrt(x * y)
    return np.array([[x, K], [K, y]])


def line(inputs):
    """Fewer dimensions than inputs: covariances of four signals are singular."""
    points = np.linspace(-1.0, 1.2, inputs)
    return 0.5 * np.outer(points, points) + 0.1


def chosen(K0, inputs):
    return K0[np.ix_(inputs, inputs)]


def case(net, K0, known, of, factors=None, **allowed):
    """Inputs K0 whose fields are those of the known inputs ``of``, times factors.

    ``allowed`` are errors by field: relative ones, and others in units of its natural size.
    """
    return net, K0, known, of, factors, allowed


def relative(error, *fields):
    return dict.fromkeys(fields or ("G11", "mean_shift", "four_point"), (error, 0.0))


def natural(error, *fields):
    return dict.fromkeys(fields or ("G11", "mean_shift", "four_point"), (0.0, error))


ROOT = 10**0.5
HOMOGENEOUS = relative(1e-11, "G11", "four_point") | natural(5e-10, "mean_shift")
VANISHED = {"G11": (1e-9, 1e-12), "four_point": (1e-9, 1e-12), "mean_shift": (1e-8, 1e-12)}
ONE = {"G11": (1e-8, 1e-12), "mean_shift": (1e-9, 1e-12), "four_point": (1e-8, 0.0)}
ONE |= {"kernel_variance": (1e-8, 0.0), "output_kurtosis": (1e-8, 0.0)}
# The promise: 1e-9 of the largest entry, with kinks elsewhere than at zero 1e-6.
PROMISED = {"relu": natural(1e-9, "G11")}
KINKED = natural(1e-6, "G11")


def without_bias(name, gamma, depth):
    return network(name, gamma, depth, **NO_BIAS)


CASES = {
    # φ(λh) = λφ(h) without biases: what one input has, times λ for every signal of the other.
    **{
        f"parallel {name}": case(
            without_bias(name, 0.7, 3), two(0.3, 3.0, 1.0), 0.3, [0, 0], [1, ROOT], **HOMOGENEOUS
        )
        for name in ("relu", "abs", "leaky_relu")
    },
    # |h| does not see signs: shifts were NaN, or of the size of the kernels.
    **{
        f"opposite |h| to {y}": case(
            without_bias("abs", 0.0, 3),
            two(0.3, y, -1.0),
            0.3,
            [0, 0],
            [1, (y / 0.3) ** 0.5],
            **natural(5e-10, "mean_shift") | {"four_point": (1e-11, 1e-11)},
        )
        for y in (0.75, 1.2)
    },
    "opposite and even": case(
        network("max(0,abs(h)-0.3)", 0.0, 2),
        two(0.4, 0.4, -1.0),
        0.4,
        [0, 0],
        **natural(1e-9, "G11", "mean_shift"),
    ),
    **{
        f"nearly parallel {name} {c} {bias}": case(
            network(name, 0.7, 2, bias_variance=bias, readout_bias_variance=bias),
            two(0.3, 3.0, c * (1 - 3e-9)),
            two(0.3, 3.0, c),
            [0, 1],
            **{field: (1e-7, 5e-9) for field in ("G11", "mean_shift", "four_point")},
        )
        for name in ("relu", "abs", "hard_tanh")
        for c, bias in ((1.0, 0.07), (-1.0, 0.0), (-1.0, 0.07))
    },
    # Kernels that rounding sets apart by less than 1e-14, of signals of different norms.
    "parallel but for rounding": case(
        network("relu", 0.7, 2),
        two(0.3, 3.0, 1 - 6e-15),
        two(0.3, 3.0, 1.0),
        [0, 1],
        **{field: (1e-7, 1e-8) for field in ("G11", "mean_shift", "four_point")},
    ),
    # For odd φ without bias a covariance fluctuates as the variance does, up to the sign.
    **{
        f"odd {sign} {off}": case(
            without_bias("tanh", 0.7, 3),
            two(0.3, 0.3, sign * (1 - off)),
            0.3,
            [0, 0],
            [1, sign],
            **natural(1e-9 + 20 * off, "G11", "four_point"),
            **natural((1e-9 + 20 * off) / 10, "mean_shift"),
        )
        for sign in (1, -1)
        for off in (0.0, 1e-8, 1e-4)
    },
    **{
        f"nearly identical {gamma} {off}": case(
            network("relu", gamma, 2),
            two(0.3, 0.3, 1 - off / 0.3),
            0.3,
            [0, 0],
            **natural((1e-9 if off else 1e-11) + 6 * off, "mean_shift", "G11"),
        )
        for gamma in (0.7, 1.0)
        for off in (0.0, 7e-9, 1e-8, 1e-4)
    },
    # The same input twice, alone and next to a third one.
    **{
        f"equal {name} {number}": case(
            ft.ResidualNetwork(depth=2, activation=name, branch_scale=0.1),
            *rows,
            **relative(1e-12, "mean_shift"),
        )
        for name in ("elu", "hardtanh")
        for number, rows in enumerate(
            ((chosen(UNEQUAL, [0, 1, 0]), UNEQUAL, [0, 1, 0]), (np.full((2, 2), 0.5), 0.5, [0, 0]))
        )
    },
    **{
        f"two of three {name} {gamma} {pair}": case(
            network(name, gamma, 2, branch_scale=0.2),
            chosen(APART, pair),
            APART,
            pair,
            **PROMISED.get(name, KINKED),
        )
        for name in ("relu", "hard_tanh", "relu6", "hard_swish")
        for gamma in (1.0, 0.7)
        for pair in ([0, 1], [0, 2], [1, 2], [2, 0, 1])
    },
    **{
        f"two of {inputs} on a line {name}": case(
            network(name, 1.0, 1),
            chosen(line(inputs), [0, 1]),
            line(inputs),
            [0, 1],
            **PROMISED.get(name, KINKED),
        )
        for name, inputs in (("relu", 5), ("hard_tanh", 3), ("relu6", 4), ("hard_tanh", 5))
    },
    "order": case(
        network("gelu", 0.7, 2),
        chosen(THREE, [2, 0, 1]),
        THREE,
        [2, 0, 1],
        G11=(1e-8, 1e-9),
        four_point=(1e-10, 1e-9),
        mean_shift=(1e-7, 1e-9),
    ),
    "one as a matrix": case(
        network("gelu", 0.7, 4), np.array([[0.3]]), 0.3, [0], **ONE | relative(1e-12, "mean_shift")
    ),
    # Every pair of inputs that are zero, and two that are, which are the same.
    **{
        f"zero {name} {number}": case(
            network(name, 0.7, 2),
            *rows,
            G11=(1e-9, 1e-9),
            mean_shift=(1e-8, 1e-9),
            residual_kernels=(1e-8, 1e-14),
        )
        for name in ("heaviside", "sign", "relu", "tanh", "hard_tanh")
        for number, rows in enumerate(
            ((np.pad(ZEROS, ((1, 0), (1, 0))), ZEROS, [0, 0, 1, 2]), (ZEROS[:2, :2], ZEROS, [0, 1]))
        )
    },
    # Without biases it stays zero beside the others.
    **{
        f"stays zero {name}": case(
            without_bias(name, 0.7, 2), ZEROS, ZEROS[1:, 1:], [0, 0, 1], [0, 1, 1], **VANISHED
        )
        for name in ("relu", "abs", "tanh", "hard_tanh", "relu6", "selu", "elu")
    },
    **{
        f"no input at all {name} {inputs}": case(
            network(name, 0.7, 2),
            np.zeros((inputs, inputs)),
            0.0,
            [0] * inputs,
            **relative(1e-9, "G11", "mean_shift"),
        )
        for name in ("relu", "max(0,h)+1", "relu6", "hard_tanh")
        for inputs in (1, 2)
    },
    # Where φ(0) is not zero: the limit of narrow signals.
    "narrow": case(
        network("max(0,h)+1", 0.7, 1),
        ZEROS[:2, :2] + np.diag([1e-16, 0.0]),
        ZEROS[:2, :2],
        [0, 1],
        G11=(1e-7, 1e-6),
        four_point=(1e-7, 1e-6),
        mean_shift=(1e-7, 1e-5),
    ),
    **{
        f"variances {name} {i}": case(network(name, gamma, 2), TWO[i, i], TWO, [i], **ONE)
        for name, gamma in (("erf", 0.7), ("gelu", 1.0), ("relu", 0.0), ("Heaviside(h-1)", 0.7))
        for i in (0, 1)
    },
    # Deep networks whose signals grow too wide for modes.
    **{
        f"wide {name} {depth}": case(
            ft.ResidualNetwork(depth=depth, activation=name),
            0.05,
            np.array([[0.05, 0.03], [0.03, 0.05]]),
            [0],
            G11=(1e-8, 1e-9),
            mean_shift=(1e-9, 1e-9),
        )
        for name, depth in (("erf", 5), ("erf", 14), ("tanh", 14))
    },
    # K0 = 0 is the limit of narrow inputs, whose φ² fluctuate.
    **{
        f"jump {name} {gamma}": case(
            network(name, gamma, 2, bias_variance=0.0),
            1e-24,
            0.0,
            [0],
            **natural(1e-10, "residual_kernels", "G11", "mean_shift", "four_point"),
        )
        for name in ("heaviside", "sign", STEPPED)
        for gamma in (0.0, 1.0)
    },
}
SLOW = (
    *("hard_tanh", "relu6", "hard_swish", "hardtanh", "selu", "elu", "identical 0.7", "14"),
    *("three relu 0.7", "equal elu"),
)


def entries(values, of, ndim):
    """Those of some inputs of a field (..., P), (..., P, P) or (..., p, p), times factors."""
    inputs, factors = of
    if ndim == 1:
        return values[..., inputs]
    if ndim == 2:
        return values[..., inputs, :][..., inputs] * np.outer(factors, factors)
    i, j = np.triu_indices(len(inputs))
    places = positions(values.shape[-1])
    at, factor = places[inputs[i], inputs[j]], factors[i] * factors[j]
    return values[..., at, :][..., at] * np.outer(factor, factor)


DIMENSIONS = {"G11": 4, "four_point": 4, "output_kurtosis": 1}


@pytest.mark.slow_but(1, 4, 10, 16, 27, 29, 110, 112)
@pytest.mark.parametrize(
    "name", [slow(name) if any(word in name for word in SLOW) else name for name in CASES]
)
def test_fields_are_those_of_inputs_that_know_them(name):
    net, K0, known_K0, of, factors, allowed = CASES[name]
    s, known = ft.solve(net, K0), ft.solve(net, known_K0)
    of = np.array(of), np.ones(len(of)) if factors is None else np.array(factors)
    for field, (rtol, share) in allowed.items():
        ndim = DIMENSIONS.get(field, 2)
        value, expected = np.asarray(getattr(s, field)), np.asarray(getattr(known, field))
        if np.ndim(K0) == 0:
            value = value[(..., *[None] * min(ndim, 2))]
        if np.ndim(known_K0) == 0:
            expected = expected[(..., *[None] * min(ndim, 2))]
        expected = entries(expected, of, ndim)
        size = known.residual_kernels.max() / net.width if "shift" in field else abs(expected).max()
        assert np.isfinite(value).all() and value.shape == expected.shape
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=share * size, err_msg=field)


@pytest.mark.parametrize("name", ["relu", slow("hard_tanh"), slow("relu6"), slow("hard_swish")])
def test_covariances_of_pairs_are_positive_semidefinite(name):
    for K0, allowed in ((APART, 1e-10), (line(5 if name == "relu" else 3), 1e-6)):
        eigenvalues = np.linalg.eigvalsh(of_pairs(ft.solve(network(name, 1.0, 2), K0).G11))
        assert eigenvalues.min() > -allowed * eigenvalues.max()


def shift(name, rho, K0):
    """N (⟨C⟩ − C*)/ρ⁴ of the second layer."""
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=rho, skip_scale=1.0)
    return net.width * ft.solve(net, K0).mean_shift[2, 0, 1] / rho**4


@pytest.mark.parametrize(
    ("name", "K0"),
    [("relu", EQUAL), slow("abs", OPPOSED), slow("relu", OPPOSED), slow("abs", EQUAL)],
)
def test_the_limit_of_small_branches_is_approached_as_their_square(name, K0):
    """S(ρ) = S + S' ρ² + O(ρ³), from ρ where no digits are lost, holds down to 1e-5."""
    rho = np.array([1.5e-3, 3e-3, 6e-3, 1.2e-2])
    basis = rho[:, None] ** [0, 2, 3, 4]
    limit = np.linalg.solve(basis, [shift(name, one, K0) for one in rho])
    for small in (3e-4, 1e-4, 1e-5):
        expected = limit @ small ** np.array([0, 2, 3, 4])
        assert shift(name, small, K0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow_but(0, 2, 6, 10, 14)
@pytest.mark.parametrize("name", ["tanh", "hard tanh", "relu", slow("heaviside")])
@pytest.mark.parametrize(
    "K0", [EQUAL + 0.5, np.array([[1e4, 1.0], [1.0, 1e-4]])], ids=["alike", "wide and narrow"]
)
@pytest.mark.parametrize(
    "parameters", [{"branch_scale": 0.0}, {"weight_variance": 0.0, "bias_variance": 0.0}]
)
def test_layers_that_add_nothing_shift_nothing(name, K0, parameters):
    net = ft.ResidualNetwork(depth=3, activation=name, **parameters)
    assert (ft.solve(net, K0).mean_shift == 0).all()
    assert (ft.solve(net, K0[0, 0]).mean_shift == 0).all()


# Jumps with unequal squares on both sides: averages over two signals that are one diverge.
UNEQUAL = {"heaviside": -1.145052e-4, "sign(h)+1": -7.245544e-4, "where(h>0,h+1,0)": -6.389302e-5}


@pytest.mark.parametrize("name", [*UNEQUAL, slow("elu")])
@pytest.mark.parametrize(
    ("rho", "first_skip"), [([0, 0.3], 1.0), ([0.3, 0, 0], 1.0), ([0, 0.3, 0, 0.4], 0.7)]
)
@pytest.mark.parametrize("K0", [0.5, 0.0, EQUAL, slow(np.diag([0.5, 0.0]))], ids=str)
def test_layers_that_add_nothing_are_not_there(name, rho, first_skip, K0):
    """Those of the network without them, and what is printed for it."""
    net = ft.ResidualNetwork(
        depth=len(rho),
        activation=activation_from_text(name),
        branch_scale=rho,
        skip_scale=[first_skip, *np.ones(len(rho) - 1)],
    )
    kept = np.flatnonzero(rho)
    fewer = net.replace(depth=len(kept), branch_scale=np.array(rho)[kept], skip_scale=1.0)
    found, expected = ft.solve(net, K0), ft.solve(fewer, first_skip**2 * K0)
    places = np.array([0, *(kept + 1), net.depth + 1])
    # Series of several inputs end at orders of their own.
    rtol = 1e-5 if np.ndim(K0) else 1e-9
    np.testing.assert_allclose(found.mean_shift[places], expected.mean_shift, rtol, 1e-15)
    np.testing.assert_allclose(found.G11[np.ix_(places, places)], expected.G11, rtol, 1e-15)
    beside_zero = name in UNEQUAL and np.ndim(K0) == 2 and not np.diag(K0).all()
    if beside_zero or (np.ndim(K0) == 0 and K0 == 0 and name.startswith("where")):
        for field in ("response", "log_response"):
            with pytest.raises(OverflowError):
                getattr(found, field)
    else:
        assert not np.isnan(found.log_response).any()
    assert np.ndim(K0) or not ft.solve(net.replace(branch_scale=0.0), K0).mean_shift.any()
    if name in UNEQUAL and rho == [0, 0.3] and np.ndim(K0) == 0:
        second = [ft.solve(each, K0, order=2).mean_shift_2[-1] for each in (net, fewer)]
        assert second[0] == pytest.approx(second[1], rel=1e-8, abs=1e-15)
        assert not K0 or found.mean_shift[-1] == pytest.approx(UNEQUAL[name], rel=1e-6)


def test_memory_where_the_system_tells_no_free_one(monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.memory.Path", lambda _: Path("/nowhere"))
    assert 2**28 < memory_available() < 2**50


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("name", ["G11", "kernel_variance", "four_point", "output_kurtosis"])
def test_too_many_inputs_for_the_memory(monkeypatch, name):
    """How much G11 needs is said before anything of that size is made."""
    monkeypatch.setattr("fieldtheory.numerics.memory.memory_available", lambda: 10**6)
    s = ft.solve(network("erf", 1.0, 10), 0.3 * np.eye(40))
    _ = s.chain.pairs
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"40 inputs needs about .* GB .*ft\.covariance_with"):
        getattr(s, name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


PHI = {
    "tanh": np.tanh,
    "softsign": lambda h: h / (1 + np.abs(h)),
    "erf": erf,
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "relu6": lambda h: np.clip(h, 0, 6),
}
FAR = np.diag([1e-6, 1.0, 50.0]) + 5e-4 * (1 - np.eye(3))


def graded(first, end):
    """Ends of panels on both sides of zero that grow from there, and at ±1 and ±6."""
    cuts = np.minimum([0.0, 1.0, 6.0, *first * 2.2 ** np.arange(14)], end)
    return np.unique(np.concatenate([-cuts, cuts]))


def rule(K, count=14):
    """Three signals, and weights, by panels of each given those before."""
    x, w = np.polynomial.legendre.leggauss(count)
    L = np.linalg.cholesky(K)
    z, weights = np.zeros((3, 1)), np.ones(1)
    for i in range(3):
        mean, parts = L[i, :i] @ z[:i], []
        ends = graded(min(0.5, 2 * L[i, i]), 9 * L[i, i] + np.abs(mean).max())
        for low, high in pairwise(ends):
            cuts = [np.clip((end - mean) / L[i, i], -9.0, 9.0) for end in (low, high)]
            half = (cuts[1] - cuts[0]) / 2
            nodes = cuts[0] + half * (1 + x[:, None])
            parts.append((nodes, weights * half * w[:, None] * np.exp(-(nodes**2) / 2)))
        nodes, attached = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        used = attached > 1e-19
        z = np.repeat(z[:, None, :], len(nodes), axis=1)
        z[i] = nodes
        z, weights = z[:, used], attached[used] / np.sqrt(2 * np.pi)
    return L @ z, weights


WIDER = FAR * np.outer([1.0, 1.0, 30.0], [1.0, 1.0, 30.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "K0"),
    [
        ("erf", FAR),
        slow("tanh", FAR),
        slow("softsign", FAR),
        slow("hard_tanh", WIDER),
        slow("relu6", WIDER),
    ],
)
def test_the_first_layer_by_panels(name, K0):
    """⟨φφ;φφ⟩ of three signals of which one is narrow and one is wide."""
    order = [2, 1, 0]
    net = ft.ResidualNetwork(
        depth=1, activation=name, bias_variance=0.0, weight_variance=1.0, readout_weight_variance=1
    )
    h, weights = rule(K0[np.ix_(order, order)])
    values = PHI[name](h[order])
    pairs = list(zip(*np.triu_indices(3), strict=True))
    products = np.array([values[i] * values[j] for i, j in pairs])
    means = products @ weights
    # Sums of what is left less the means, of parity even in all signals.
    expected = (products * weights) @ products.T - np.outer(means, means)
    found = ft.solve(net, K0).G11[1, 1] * net.width
    tolerance = 1e-8 if name in ("erf", "tanh") else 1e-6
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


SLOPES = {
    "relu": lambda h: (h > 0) * 1.0,
    "abs": np.sign,
    "elu": lambda h: np.where(h > 0, 1.0, np.exp(np.minimum(h, 0))),
    "softsign": lambda h: 1 / (1 + np.abs(h)) ** 2,
    "tanh": lambda h: 1 / np.cosh(h) ** 2,
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("bias", [0.0, 0.07])
def test_responses(name, bias):
    """Of a covariance: beside zero slopes are the mean of both sides, as they are of narrow x."""
    net = network(name, 0.7, 2, bias_variance=bias)
    s, a = ft.solve(net, ZEROS[:2, :2]), layer_coefficients(net).weights
    expected = 1.0
    for l, K in enumerate(s.kernels[:-1]):
        near = K + np.diag([1e-26 * (K[0, 0] == 0), 0.0])
        h, weights = kinked_nodes(near, 40)
        gain = a[l + 1] * (weights @ np.prod(SLOPES[name](h), axis=0))
        expected *= (0.49 if l < 2 else 0.0) + gain
    assert s.output_response[0, 1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heaviside", "sign"])
def test_networks_that_are_drawn(name):
    """Theory and simulation mean the same by an input that is zero, or tiny."""
    net = network(name, 0.9, 2, bias_variance=0.0, width=40)
    for k in (0.0, 1e-30):
        s = ft.solve(net, np.diag([k, 0.3]))
        for method in ("kernel", "weights"):
            e = ft.simulate(net, np.diag([k, 0.3]), samples=1500, seed=1, method=method)
            error = np.maximum(e.mean_error[1:], 1e-12)
            off = (e.mean - s.residual_kernels - s.mean_shift)[1:]
            assert np.abs(off / error).max() < 4.5


@pytest.mark.parametrize("text", ["Heaviside(h)*(h+2)", slow("Heaviside(h)*(h**2+1)")])
def test_closed_forms_that_divide_by_variances(text):
    """Averages of narrow signals in place of 0/0, infinite where these grow beyond all limits."""
    averages = layer_functions(as_activation(text))
    found, near = (
        averages.covariance(np.array([k, 0.3]), np.array([0.3, k]), np.zeros(2))
        for k in (0.0, 1e-28)
    )
    np.testing.assert_allclose(found, near, rtol=1e-12)
    assert averages.covariance_susceptibility(0.0, 0.3, 0.0) == np.inf


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    ("name", "K"),
    crossed(["sign", "heaviside"], [np.diag([0.0, 0.3]), np.array([[0.3, 0.6], [0.6, 1.2]])]),
)
def test_responses_of_jumps_that_are_infinite(name, K):
    """∂ arcsin c/∂K_xy = 1/√(K_xx K_yy − K_xy²)."""
    s = ft.solve(network(name, 0.7, 1), K)
    for field in ("response", "residual_response", "output_response"):
        with pytest.raises(OverflowError, match="is infinite in layer 1: .* input that is zero"):
            getattr(s, field)
    assert np.isfinite(s.G11).all()


@pytest.mark.slow_but(0, 1, 4, 5, 7, 8, 9, 11)
@pytest.mark.parametrize("text", ["sign", "heaviside", STEPPED, "sign(h)+h"])
@pytest.mark.parametrize("K", [(0.0, 0.0, 0.0), (0.0, 0.3, 0.0), (0.3, 0.0, 0.0)])
def test_averages_of_many_digits(text, K):
    """Two signals that vanish are one in mpmath as well: ⟨φφ⟩ = (φ(0+)² + φ(0−)²)/2."""
    exact = layer_functions(as_activation(text), "mpmath")
    with mpmath.workdps(30):
        found = float(exact.covariance(*map(mpmath.mpf, K)))
    if not any(K):
        assert found == pytest.approx(0.5 if "eaviside" in text else 1.0, rel=1e-14)
    assert found == pytest.approx(
        float(layer_functions(as_activation(text)).covariance(*K)), abs=1e-14
    )


def test_responses_of_parallel_inputs_where_slopes_diverge():
    net = network("sign", 0.7, 2)
    for norms in ((0.3, 0.75), (0.3, 0.3)):
        for field in ("response", "G12"):
            with pytest.raises(OverflowError, match="inputs that are parallel"):
                getattr(ft.solve(net, two(*norms, 1.0)), field)
    # Kernels at a finite width move along λ: ⟨φ(h)φ(λh)⟩ = 1 + (1 + λ) √(2K/π) + λK.
    theory = ft.solve(network("sign(h)+h", 0.7, 1), two(0.3, 0.75, 1.0)).chain.pairs
    slope = 1 + (1 + 1 / np.sqrt(0.75 / 0.3)) / np.sqrt(2 * np.pi * 0.3)
    assert theory.gains.pair[1, 0] / theory.layers.weights[1] == pytest.approx(slope, rel=1e-12)
    assert theory.gains.first[1] == theory.gains.second[1] == 0
