"""A block of one layer against closed forms and the solution; interface, files and refusals."""

import re
import warnings

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.measured_blocks import measuring
from tests.rounding import assert_same

K, CW, CB = 0.7, 1.3, 0.1
N = 24


def erf_averages(K):
    """⟨φ²⟩, its derivative in K and ⟨φ'²⟩ (Williams 1997)."""
    square = 2 / np.pi * np.arcsin(2 * K / (1 + 2 * K))
    slope = 4 / np.pi / ((1 + 2 * K) * np.sqrt(1 + 4 * K))
    return square, slope, 4 / np.pi / np.sqrt(1 + 4 * K)


def erf(h):
    from scipy.special import erf

    return erf(h)


# φ with its averages at K, typed.
ACTIVATIONS = {
    "erf": (erf, erf_averages(K)),
    "relu": (lambda h: np.maximum(h, 0), (K / 2, 0.5, 0.5)),
    "linear": (lambda h: h, (K, 1.0, 1.0)),
}


def one_layer(phi, overlap=0.0, weight_variance=CW):
    """R(z) = W φ(z) + b + overlap z."""

    def block(width, rng):
        W = rng.normal(size=(width, width)) * (weight_variance / width) ** 0.5
        b = rng.normal(size=width) * CB**0.5
        return lambda z: phi(z) @ W.T + b + overlap * z

    return block


def exact(averages, overlap, skip):
    """What must be found: z' = (γ + c ξ) z + ξ (W φ + b) is a layer of a residual network."""
    square, slope, derivatives = averages
    affine = CW * square + CB
    # ξ > 0 from (γ + c ξ)² K + ξ² affine = K.
    roots = np.roots([overlap**2 * K + affine, 2 * skip * overlap * K, (skip**2 - 1) * K])
    branch = roots.max()
    straight = (skip + branch * overlap) ** 2
    return {
        "branch_scale": branch,
        "parallel": straight + branch**2 * CW * slope,
        "perpendicular": straight + branch**2 * CW * derivatives,
    }


def z_scores(found, expected):
    return {
        name: (getattr(found, name) - value) / max(getattr(found, f"{name}_error"), 1e-12)
        for name, value in expected.items()
    }


OPTIONS = {"width": 48, "samples": 500, "K0": K * np.eye(16)}
CASES = [
    (name, c, skip)
    for name in ACTIVATIONS
    for c, skip in ((0.0, 0.5**0.5), (-0.4, 0.5**0.5), (-0.4, 0.0), (-0.4, 0.95), (0.2, 0.6))
]


@pytest.mark.parametrize(("name", "overlap", "skip"), CASES)
def test_one_layer_agrees_with_closed_forms(name, overlap, skip):
    phi, averages = ACTIVATIONS[name]
    m = ft.measure_block(one_layer(phi, overlap), skip_scale=skip, seed=1, **OPTIONS)
    expected = exact(averages, overlap, skip)
    assert max(map(abs, z_scores(m, expected).values())) < 4
    # Errors that show a fault of 2 %; below, one is shown.
    for field in expected:
        assert getattr(m, f"{field}_error") < 0.008 * getattr(m, field), field
    np.testing.assert_allclose(np.diag(m.kernel).mean(), K, rtol=1e-12)


def test_two_per_cent_are_seen():
    faulty = one_layer(erf, weight_variance=1.04 * CW)
    scores = z_scores(
        ft.measure_block(faulty, **OPTIONS), exact(ACTIVATIONS["erf"][1], 0.0, 0.5**0.5)
    )
    assert abs(scores["branch_scale"]) > 4


@pytest.mark.slow
def test_errors_are_those_of_repeated_measurements():
    block = one_layer(erf, -0.4)
    repeated = [ft.measure_block(block, 20, 60, K0=K, seed=seed) for seed in range(40)]
    for name in ("branch_scale", "parallel", "perpendicular"):
        scatter = np.std([getattr(m, name) for m in repeated], ddof=1)
        error = np.sqrt(np.mean([getattr(m, f"{name}_error") ** 2 for m in repeated]))
        # The scatter of 40 is known to 11 %.
        assert 0.7 < error / scatter < 1.4, name


@pytest.mark.parametrize(
    ("name", "phi", "K0", "weight_variance"),
    [("relu", lambda h: np.maximum(h, 0), 1.0, 1.28), ("tanh", np.tanh, 1e-6, 0.64)],
)
def test_critical_network_needs_no_other_scale(name, phi, K0, weight_variance):
    """C_W = (1 − γ²)/A_2 and (1 − γ²)/φ'(0)², PDLT-B (B.20) and (B.21): ξ = 1, and both χ are 1."""
    net = ft.critical_network(name, skip_scale=0.6)
    np.testing.assert_allclose(net.weight_variance, weight_variance, rtol=1e-12)

    def block(width, rng):
        W = rng.normal(size=(width, width)) * (net.weight_variance / width) ** 0.5
        return lambda z: phi(z) @ W.T

    m = ft.measure_block(block, skip_scale=0.6, **OPTIONS | {"K0": K0 * np.eye(16)})
    np.testing.assert_allclose(m.parallel, 1.0, rtol=1e-5)
    assert abs(m.branch_scale - 1) < 4 * m.branch_scale_error < 0.02
    assert abs(m.perpendicular - 1) < 4 * m.perpendicular_error < 0.02


def test_pairs_of_inputs():
    K0 = np.array([[1.0, 0.6], [0.6, 0.8]])
    m = ft.measure_block(one_layer(erf, -0.4), 40, 500, K0=K0, skip_scale=0.6)
    diagonal = np.sqrt(np.outer(1 + 2 * np.diag(K0), 1 + 2 * np.diag(K0)))
    affine = CB + CW * 2 / np.pi * np.arcsin(2 * K0 / diagonal)
    straight = (0.6 - 0.4 * m.branch_scale) ** 2
    expected = straight * K0 + m.branch_scale**2 * affine
    assert np.abs((m.kernel - expected) / m.kernel_error).max() < 4
    np.testing.assert_allclose(m.kernel, expected, rtol=0.02)
    np.testing.assert_allclose(m.kernel.trace(), K0.trace(), rtol=1e-12)


def test_block_that_mixes_inputs():
    """R gives every input its neighbour: ⟨R z⟩ is not symmetric, the kernel is."""
    m = ft.measure_block(lambda width, rng: lambda z: np.roll(z, 1, axis=0), 40, 400, K0=np.eye(3))
    neighbour = np.roll(np.eye(3), 1, axis=0)
    both = neighbour + neighbour.T
    expected = np.eye(3) + m.skip_scale * m.branch_scale * both
    assert abs(m.branch_scale - 0.5**0.5) < 4 * m.branch_scale_error
    np.testing.assert_allclose(m.kernel, m.kernel.T, rtol=1e-12)
    np.testing.assert_allclose(m.kernel, expected, atol=4 * m.kernel_error.max())


def test_same_seeds_give_the_same_numbers_and_progress_changes_nothing(capsys, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    first, other = (ft.measure_block(one_layer(erf), 10, 20, seed=seed) for seed in (3, 4))
    assert capsys.readouterr().err == "" and first.branch_scale != other.branch_scale
    again = ft.measure_block(one_layer(erf), 10, 20, seed=3, progress=True)
    assert "measure_block" in capsys.readouterr().err
    assert_same(first.kernel, again.kernel)


def test_text():
    m = ft.measure_block(one_layer(erf, -0.4), 20, 50, K0=K * np.eye(2), seed=2**70)
    text = str(m)
    for row in m.rows:
        assert format(row["value"], ".6g") in text and row["quantity"] in text
    assert m.statement in text and m.statement.startswith("Scale the skip by 0.707107 and")
    assert "decay" in m.statement and "e in" in m.statement
    page = m._repr_html_()
    assert page.startswith("<table>") and "χ_∥" in page and "<p>Scale the skip" in page


def answering(answer):
    return lambda width, rng: answer


def random_when_applied(width, rng):
    return lambda z: z @ rng.normal(size=(width, width))


def writing(width, rng):
    def apply(z):
        z *= 2
        return z

    return apply


def failing(width, rng):
    raise RuntimeError("no\nweights")


BLOCKS = [
    (3, TypeError, "block must be a callable block(width, rng) .* got 3"),
    (None, TypeError, "block must be a callable"),
    (lambda z: z, TypeError, "block must be callable as block(width, rng)"),
    (lambda z, rng: np.ones(3), TypeError, "returned array"),
    (failing, ValueError, "block(width=10, rng) failed: RuntimeError: no weights"),
    (
        answering(lambda z: z[:, :3]),
        ValueError,
        "block must return an array of the shape of its input (1, 10), got shape (1, 3)",
    ),
    (answering(lambda z: 1.0), ValueError, "got shape ()"),
    (answering(lambda z: None), TypeError, "block must return real numbers, got array"),
    (answering(lambda z: "a"), TypeError, "block must return real numbers"),
    (answering(lambda z: z * 1j), TypeError, "block must return real numbers"),
    (
        answering(lambda z: z.astype(np.float16)),
        TypeError,
        "block must return float32 or float64 numbers, got float16",
    ),
    (answering(lambda z: z * np.nan), ValueError, "return finite numbers, got nan"),
    (answering(lambda z: z + np.inf), ValueError, "return finite numbers, got inf"),
    (answering(lambda z: 1e200 * z), OverflowError, "exceeds the range of float64"),
    (answering(lambda z: z @ z), ValueError, "failed on a signal of shape (1, 10)"),
    (random_when_applied, ValueError, "it gave two answers for one z"),
    (writing, ValueError, "failed on a signal .* read-only"),
    (answering(lambda z: 0 * z), ValueError, "block must not vanish"),
]
ARGUMENTS = [
    ({"width": 0}, ValueError, "width must be an integer >= 1, got 0"),
    ({"width": -3}, ValueError, "width must be an integer >= 1, got -3"),
    ({"width": 2.5}, TypeError, "width must be an integer"),
    ({"samples": 19}, ValueError, "samples must be an integer >= 20 .* got 19"),
    ({"samples": "many"}, TypeError, "samples must be an integer"),
    ({"seed": -1}, ValueError, "seed must be an integer >= 0"),
    ({"K0": 0.0}, ValueError, "K0 must have a variance > 0"),
    ({"K0": -1.0}, ValueError, "K0 must be a variance >= 0"),
    ({"K0": [1.0, 2.0]}, ValueError, "K0 must be a variance or a matrix (P, P), got shape (2,)"),
    ({"K0": [[1.0, 2.0], [2.0, 1.0]]}, ValueError, "K0 must be positive semidefinite"),
    ({"K0": "one"}, TypeError, "K0 must be"),
    ({"skip_scale": -0.1}, ValueError, "skip_scale must be a finite real number >= 0"),
    ({"skip_scale": np.nan}, ValueError, "skip_scale must be a finite real number >= 0"),
    ({"skip_scale": "x"}, TypeError, "skip_scale must be a finite real number >= 0"),
    ({"skip_scale": 1.0}, ValueError, "skip_scale must be below 1 for this block, got 1"),
    ({"skip_scale": 1.5}, ValueError, "skip_scale must be below 1 for this block, got 1.5"),
    ({"gamma": 0.5}, TypeError, "did you mean skip_scale"),
]


def escaped(words):
    return ".*".join(map(re.escape, words.split(" .* ")))


@pytest.mark.parametrize(("block", "error", "words"), BLOCKS, ids=lambda c: "")
def test_refused_blocks(block, error, words):
    with pytest.raises(error, match=escaped(words)) as caught:
        ft.measure_block(block, 10, 20)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("arguments", "error", "words"), ARGUMENTS)
def test_refused_arguments(arguments, error, words):
    with pytest.raises(error, match=escaped(words)):
        ft.measure_block(**{"block": one_layer(erf), "width": 10, "samples": 20} | arguments)


# Blocks W f(z) that jump, have infinite slopes or are rounded, and some that only look like it.
UNRESOLVED = {
    "threshold": lambda z: z * (z > 0.5),
    "rare": lambda z: z * (z > 2.0),
    "sign": np.sign,
    "half": lambda z: z.astype(np.float16).astype(float),
    "grid": lambda z: np.round(50 * z) / 50,
    "root": lambda z: np.sign(z) * np.sqrt(np.abs(z)),
    "all at once": lambda z: z * (1 + (z[:, :1] > 0)),
}
RESOLVED = {
    "kink": lambda z: np.maximum(z, 0.2 * z),
    "kinks": lambda z: np.abs(np.abs(z) - 0.5),
    "steep": lambda z: np.tanh(300 * z),
    "single": lambda z: np.tanh(z.astype(np.float32)).astype(float),
    "constant": lambda z: np.ones_like(z),
    "norm": lambda z: z / np.sqrt((z**2).mean()),
}


def layer_of(f):
    def block(width, rng):
        W = rng.normal(size=(width, width)) / width**0.5
        return lambda z: f(z) @ W.T

    return block


@pytest.mark.parametrize("name", UNRESOLVED)
def test_what_is_not_resolved_is_not_a_number_and_said(name):
    with pytest.warns(UserWarning, match="block jumps, or is rounded .* cannot be measured"):
        m = ft.measure_block(layer_of(UNRESOLVED[name]), 30, 100, K0=np.eye(2))
    for field in ("parallel", "perpendicular"):
        assert np.isnan(getattr(m, field)) and np.isnan(getattr(m, f"{field}_error"))
    assert m.statement.count("cannot be measured: the block jumps or is rounded") == 2
    assert [row["quantity"] for row in m.rows] == ["skip_scale", "branch_scale"]
    if name == "threshold":
        # ⟨z² 1(z > ½)⟩ = Φ(−½) + ½ φ(½)
        expected = (0.5 / (0.308538 + 0.176033)) ** 0.5
        assert abs(m.branch_scale - expected) < 4 * m.branch_scale_error < 0.1


@pytest.mark.parametrize("width", [1, 3, 30])
@pytest.mark.parametrize("name", RESOLVED)
def test_kinks_and_steep_functions_are_resolved(name, width):
    rng = np.random.default_rng(3)
    for _ in range(20):
        apply = layer_of(RESOLVED[name])(width, rng)
        assert measuring.is_resolved(apply, *rng.normal(size=(2, 2, width)))


def test_blocks_that_are_not_drawn_anew():
    W = np.random.default_rng(0).normal(size=(20, 20))
    for fixed in (
        lambda width, rng: lambda z: z @ W,
        lambda width, rng: layer_of(np.tanh)(width, np.random.default_rng(1)),
    ):
        with pytest.warns(UserWarning, match="block is the same in every sample: if that is"):
            ft.measure_block(fixed, 20, 20)
    # These have no weights.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plain in (np.tanh, lambda z: np.roll(z, 1, axis=0) - z.mean(axis=1, keepdims=True)):
            ft.measure_block(lambda width, rng, plain=plain: plain, 20, 20, K0=np.eye(3))
        ft.measure_block(one_layer(erf), 20, 20)


def test_rows_without_signal_count_nothing():
    m = ft.measure_block(one_layer(erf), 20, 40, K0=[[1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(m.kernel.trace(), 1.0, rtol=1e-12)
    assert np.isfinite(m.perpendicular)


def test_numbers_of_other_kinds_are_taken():
    with pytest.warns(UserWarning, match="block jumps"):
        m = ft.measure_block(lambda width, rng: lambda z: np.sign(z).astype(int), 20, 40)
    # G_RR = 1 and G_Rz = ⟨|z|⟩.
    expected = (1 / np.pi + 0.5) ** 0.5 - (1 / np.pi) ** 0.5
    assert abs(m.branch_scale - expected) < 4 * m.branch_scale_error < 0.2
