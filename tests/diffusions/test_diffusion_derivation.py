"""Drift, diffusion and next order of every law against increments integrated numerically."""

import shutil

import numpy as np
import pytest
import sympy as sp
from scipy import stats
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_limit.diffusion_formulas import QUANTITIES
from fieldtheory.diffusions.diffusion_limit.small_increments import (
    SLOPES,
)
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork, ParameterLaw
from tests.tables import slow
from tests.theory.typesetting.test_latex import typeset

FUNCTIONS = {
    "tanh": np.tanh,
    "erf": erf,
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "sin": np.sin,
    "x**3": lambda x: x**3,
    "exp(x) - 1": np.expm1,
}


def law(kind, D):
    """A law without any symmetry."""
    rng = np.random.default_rng(D)

    def covariance(n):
        root = rng.normal(size=(n, n))
        return root @ root.T / n + 0.1 * np.eye(n)

    means = {"weight_mean": rng.normal(size=(D, D)), "bias_mean": rng.normal(size=D)}
    common = {"bias_covariance": covariance(D), **means}
    if kind == "matrix normal":
        factors = {"row_covariance": covariance(D), "column_covariance": covariance(D)}
        return ParameterLaw(**factors, **common)
    return ParameterLaw(weight_covariance=covariance(D * D), **common)


def network(phi, kind, D, psi="tanh"):
    own = {} if kind == "independent" else {"parameter_law": law(kind, D)}
    if not own:
        own = {"weight_variance": 1.4, "bias_variance": 0.3}
    return DiffusionNetwork(width=D, activation=phi, input_activation=psi, **own)


def layers(D):
    rng = np.random.default_rng(10 + D)
    return rng.normal(size=D), rng.normal(size=D)


def arguments(net, x, y):
    """Mean μ and covariance V (2D, 2D) of u of both inputs over Δt, weight by weight."""
    D = net.width
    a, b = np.tanh(x), np.tanh(y)
    given = net.parameter_law
    if given is None:
        weights = net.weight_variance / D * np.eye(D * D)
        biases, mean = net.bias_variance * np.eye(D), np.zeros((D, D))
        shift = np.zeros(D)
    else:
        known = given.arrays
        weights = known.get("weight_covariance")
        if weights is None:
            # vec of columns: entry (o, k) of the weights is number k D + o.
            weights = np.kron(known["column_covariance"], known["row_covariance"])
        biases, mean, shift = (known[n] for n in ("bias_covariance", "weight_mean", "bias_mean"))
    # u = (ψᵀ ⊗ 1) vec W + b of each input.
    rows = np.vstack([np.kron(v[None, :], np.eye(D)) for v in (a, b)])
    covariance = rows @ weights @ rows.T + np.kron(np.ones((2, 2)), biases)
    return np.concatenate([mean @ a + shift, mean @ b + shift]), covariance


def moments(function, mu, V, step):
    """E φ(u) and Cov φ(u), u ~ N(μ Δt, V Δt), by Gauss–Hermite rules of one and two variables."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    weights = weights / weights.sum()
    spread = np.sqrt(step * np.diag(V))
    means = function(step * mu[:, None] + spread[:, None] * nodes) @ weights
    first, second = np.meshgrid(nodes, nodes, indexing="ij")
    covariance = np.empty(V.shape)
    for i in range(len(mu)):
        for j in range(len(mu)):
            c = V[i, j] / np.sqrt(V[i, i] * V[j, j])
            other = c * first + np.sqrt(max(1 - c * c, 0)) * second
            u, v = step * mu[i] + spread[i] * first, step * mu[j] + spread[j] * other
            centred = (function(u) - means[i]) * (function(v) - means[j])
            covariance[i, j] = weights @ centred @ weights
    return means, covariance


@pytest.mark.parametrize("kind, D", [("independent", 3), ("matrix normal", 2), ("full", 3)])
@pytest.mark.parametrize("phi", FUNCTIONS)
def test_both_orders_are_those_of_increments(phi, kind, D):
    net = network(phi, kind, D)
    th, (x, y) = ft.derive(net), layers(D)
    mu, V = arguments(net, x, y)
    names = ("instantaneous_mean", "next_mean", "quadratic_covariation", "next_covariance")
    found = {name: th.lambdify(name) for name in names}
    mean = [found["instantaneous_mean"](x), found["next_mean"](x)]
    covariance = [found[name](x, y) for name in names[2:]]
    left = []
    for step in (2e-2, 1e-2):
        means, spread = moments(FUNCTIONS[phi], mu, V, step)
        left.append(
            [
                np.abs(means[:D] - step * mean[0] - step**2 * mean[1]).max(),
                np.abs(spread[:D, D:] - step * covariance[0] - step**2 * covariance[1]).max(),
            ]
        )
    for far, near in zip(*left, strict=True):
        assert near < 1e-13 or far / near == pytest.approx(8, rel=0.25)
        assert near < 1e-3


@pytest.mark.parametrize("phi, second", [("softsign", 0.0), ("elu", 0.5)])
def test_where_the_curvature_jumps_both_sides_count(phi, second):
    """φ''(0) is the mean of both sides, and what is left falls as Δt^(3/2)."""
    function = {
        "softsign": lambda x: x / (1 + np.abs(x)),
        "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    }[phi]
    net = network(phi, "matrix normal", 2)
    th, (x, _) = ft.derive(net), layers(2)
    assert float(th.slopes[1]) == second
    mu, V = arguments(net, x, x)
    left = []
    for step in (1e-4, 2.5e-5):
        spread = np.sqrt(step * V[0, 0])
        # Panels that end at the kink.
        law = stats.norm(step * mu[0], spread)
        options = {"lb": -9 * spread, "ub": 9 * spread, "points": [0.0], "epsabs": 0}
        moments_of = [law.expect(f, **options) for f in (function, lambda u: function(u) ** 2)]
        mean = th.lambdify("instantaneous_mean")(x)[0]
        covariance = th.lambdify("quadratic_covariation")(x, x)[0, 0]
        found = [moments_of[0], moments_of[1] - moments_of[0] ** 2]
        left.append(np.abs(found - step * np.array([mean, covariance])))
    assert np.allclose(left[0] / left[1], 8, rtol=0.1)


@pytest.mark.parametrize("kind", ["independent", "matrix normal", slow("full")])
def test_expressions_are_those_of_explicit_sums(kind):
    """Entry by entry with the numbers put into the symbolic sums."""
    D = 2
    net = network("swish", kind, D)
    th, (x, y) = ft.derive(net), layers(D)
    mu, V = arguments(net, x, y)
    S = V[:D, D:]
    for o in range(D):
        for p in range(D):
            value = numbers(th.quadratic_covariation, net, x, y, o, p)
            assert value == pytest.approx(S[o, p] / 4, rel=1e-12, abs=1e-14)
        mean = numbers(th.instantaneous_mean, net, x, y, o, o)
        assert mean == pytest.approx(mu[o] / 2 + V[o, o] / 4, rel=1e-12)
        assert mean == numbers(th.drift, net, x, y, o, o)


def numbers(expression, net, x, y, o, p):
    D, known = net.width, {}
    if net.parameter_law is not None:
        known = dict(net.parameter_law.arrays)
        if "weight_covariance" in known:
            known["weight_covariance"] = known["weight_covariance"].reshape(D, D, D, D)
    bases = {
        "x^{(i)}": lambda k: x[k],
        "x^{(j)}": lambda k: y[k],
        r"\mu^{W}": lambda a, b: known["weight_mean"][a, b],
        r"\mu^{b}": lambda a: known["bias_mean"][a],
        r"\Sigma^{b}": lambda a, b: known["bias_covariance"][a, b],
        r"\Sigma^{W_O}": lambda a, b: known["row_covariance"][a, b],
        r"\Sigma^{W_I}": lambda a, b: known["column_covariance"][a, b],
        r"\Sigma^{W}": lambda a, k, b, m: known["weight_covariance"][k, a, m, b],
    }
    at = {sp.Symbol("o", integer=True, positive=True): o + 1}
    at |= {sp.Symbol("p", integer=True, positive=True): p + 1}
    at |= {sp.Symbol("D", positive=True): D}
    squares = {r"\sigma_{w}": net.weight_variance, r"\sigma_{b}": net.bias_variance}
    at |= {sp.Symbol(name, positive=True): sp.sqrt(v) for name, v in squares.items()}
    written = expression.subs(at).doit()
    entries = {
        e: float(bases[str(e.base)](*(int(i) - 1 for i in e.indices)))
        for e in written.atoms(sp.Indexed)
    }
    return float(written.subs(entries))


def test_the_diffusion_is_a_root_of_the_covariance():
    th = ft.derive(DiffusionNetwork(activation="erf", input_activation="tanh"))
    o = sp.Symbol("p", integer=True, positive=True)
    same = th.instantaneous_covariance.subs(o, sp.Symbol("o", integer=True, positive=True))
    assert sp.simplify(th.diffusion**2 - same) == 0
    assert (
        ft.derive(network("tanh", "full", 2)).diffusion.shape
        == (sp.Symbol("D", positive=True),) * 2
    )


DERIVATIONS = {
    "tanh": DiffusionNetwork(),
    "swish": DiffusionNetwork(activation="swish"),
    "gelu of tanh": DiffusionNetwork(activation="gelu", input_activation="tanh"),
    "x + x**4": DiffusionNetwork(activation="x + x**4"),
    "matrix normal": network("swish", "matrix normal", 2),
    "full": network("tanh", "full", 2, psi="linear"),
}


def displays():
    found = {}
    for name, net in DERIVATIONS.items():
        for th in (ft.derive(net), ft.derive(net).general):
            for quantity in QUANTITIES:
                try:
                    found[f"{name} {th.undetermined} {quantity}"] = th.latex(quantity)
                except ValueError:
                    assert quantity in ("wide_limit", "closed_form", "exact_moments")
    return found


@pytest.mark.slow
def test_every_formula_fits_the_page_and_renders(tmp_path, katex_failures):
    found = displays()
    assert len(found) > 80
    assert katex_failures(found) == {}
    if shutil.which("pdflatex"):
        assert typeset(tmp_path, found) == {}


def test_what_is_printed_is_what_is_derived():
    th = ft.derive(DiffusionNetwork(activation="swish"))
    assert r"dx^{(i)}_{o} &= \frac{dn^{(i)}_{o}}{2} + \frac{S_{ii} dt}{4}" in th.latex("diffusion")
    general = th.general.latex("diffusion")
    assert r"\phi'(0) dn^{(i)}_{o} + \frac{\phi''(0) S_{ii} dt}{2}" in general
    assert r"\phi(x)" not in general and r"\phi(x)" in th.latex("diffusion")
    assert th._repr_latex_() == f"$${th.latex('diffusion')}$$"
    assert str(th) == "DiffusionDerivation(φ swish, ψ linear, independent parameters)"
    moments = ft.derive(DiffusionNetwork(activation="erf")).latex("exact_moments")
    rate = r"\frac{4}{\pi} \left(\sigma_{w}^{2} \langle q_{ij} \rangle + \sigma_{b}^{2}\right)"
    assert rf"d \langle q_{{ij}} \rangle / dt &= {rate}" in moments


def test_exact_moments_have_the_slope_of_the_network():
    found = ft.derive(DiffusionNetwork(activation="erf")).exact_moments
    assert found.pair.matrix[1, 1].coeff(sp.Symbol(r"\sigma_{w}", positive=True) ** 2) == 4 / sp.pi
    assert SLOPES[0] not in found.neuron.parameters
    general = ft.derive(DiffusionNetwork(activation="swish")).general.exact_moments
    assert SLOPES[0] in general.pair.parameters


REFUSED = [
    (
        "closed_form",
        {"input_activation": "tanh"},
        "a closed form needs the input_activation linear",
    ),
    ("exact_moments", {"activation": "swish"}, "φ''\\(0\\) = 0, got swish, where it is 1/2"),
    ("exact_moments", {"input_activation": "relu"}, "needs the input_activation linear, got relu"),
    (
        "wide_limit",
        {"width": 2, "parameter_law": law("full", 2)},
        "without parameter_law, got a full",
    ),
    ("drift", {"activation": "relu"}, "the one of order 1 is 1 on the right and 0 on the left"),
]


@pytest.mark.parametrize("what, arguments, words", REFUSED)
def test_what_a_network_has_not_is_refused(what, arguments, words):
    th = ft.derive(DiffusionNetwork(**arguments))
    with pytest.raises(ValueError, match=words):
        getattr(th, what)


def test_unknown_quantities_and_layers_of_other_widths_are_refused():
    th = ft.derive(DiffusionNetwork(width=3))
    with pytest.raises(ValueError, match="quantity must be one of"):
        th.latex("action")
    with pytest.raises(ValueError, match="quantity must be one of"):
        th.lambdify("drift of air")
    with pytest.raises(ValueError, match=r"x must have 3 neurons, got shape \(2,\)"):
        th.lambdify("instantaneous_mean")([1.0, 2.0])


def test_conditions_are_those_of_the_network():
    found = ft.derive(DiffusionNetwork(activation="relu")).conditions
    assert not found.has_limit and found.failing[0].found == "φ' jumps at 0"
