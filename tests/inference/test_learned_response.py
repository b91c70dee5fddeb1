"""Responses after labels: differences of kernels, linear networks, weighted networks, refusals."""

import numpy as np
import pytest
from scipy.special import erf, ndtr

import fieldtheory as ft
from fieldtheory.inference import tilting
from tests.oracles import weighted_prior
from tests.tables import slow

X = np.random.default_rng(0).standard_normal((5, 6))
Y = np.array([[1.0, 0.3], [-1.0, 0.8], [1.5, -2.0]])
NAMES = "residual_response", "response", "output_response"
PHI = {"erf": erf, "gelu": lambda h: h * ndtr(h)}


BLOCKS = {
    "block": {"epsilon": 0.1},
    "plain block": {"normalization": None},
    "gated block": {
        "epsilon": 0.1, "gated": True, "norm_position": "post", "normalization": "layer",
    },
}  # fmt: skip


def network(activation, width=100, depth=2, gamma=0.9, kind="residual"):
    if kind in BLOCKS:
        return ft.BlockNetwork(
            depth=depth, activation=activation, width=width, skip_scale=gamma, branch_scale=0.6,
            inner_bias_variance=0.1, input_dim=6, expansion=2, **BLOCKS[kind],
        )  # fmt: skip
    return ft.ResidualNetwork(
        depth=depth, activation=activation, width=width, skip_scale=gamma, branch_scale=0.6,
        weight_variance=1.5, bias_variance=0.1, input_dim=6,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, activation, labels, entry",
    [
        ("residual", "erf", Y[:1, 0], (1, 1)),
        ("residual", "erf", Y[:1, 0], (1, 2)),
        slow("residual", "erf", Y[:2, :1], (2, 3)),
        slow("residual", "gelu", Y[:2], (2, 2)),
        ("block", "erf", Y[:2], (2, 2)),
        ("block", "gelu", Y[:1, 0], (1, 2)),
        ("plain block", "gelu", Y[:1, 0], (1, 1)),
        ("gated block", "erf", Y[:1, 0], (1, 1)),
        slow("gated block", "gelu", Y[:2], (2, 3)),
    ],
)
def test_differences_of_what_kernels_learn(kind, activation, labels, entry):
    """The same posterior at two K0; entries without labels, so that the labels pull as before."""
    net, step = network(activation, kind=kind), 1e-3
    K0 = ft.input_kernel(X[: 1 + entry[1]], net)

    def moved(change, name):
        K = K0.copy()
        K[entry] += change
        K[entry[::-1]] = K[entry]
        return getattr(ft.posterior(net, K, labels, 0.2), name)[:, *entry]

    found = ft.posterior(net, K0, labels, 0.2)
    for end, of in (("", "kernels"), ("_shift", "kernel_shift")):
        each = [moved(step * x, of) - moved(-step * x, of) for x in (1, 2)]
        expected = (8 * each[0] - each[1]) / (12 * step)
        response, output = (getattr(found, f"{name}response{end}") for name in ("", "output_"))
        np.testing.assert_allclose(response[:, *entry], expected[:-1], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(output[entry], expected[-1], rtol=1e-8)
    assert found.response_error.max() == 0
    if kind == "residual":
        # What the skip connections pass on and what the layers add.
        passed = 0.81 * found.response[:-1] + found.residual_response[1:]
        np.testing.assert_allclose(found.response[1:], passed, rtol=1e-12)


@pytest.mark.parametrize("kind", [slow("residual"), "block", "gated block"])
def test_inputs_with_labels_respond_as_others_at_their_places(kind):
    net = network("gelu", depth=1, kind=kind)
    data = np.concatenate([X[:2], X[:2] * (1 + 1e-6)])
    found = ft.posterior(net, ft.input_kernel(data, net), Y[:2, 0], 0.2).response_shift
    np.testing.assert_allclose(found[:, 2:, 2:], found[:, :2, :2], rtol=1e-4)


@pytest.mark.parametrize(
    "kind, samples", [("residual", None), ("residual", 640), ("plain block", None)]
)
def test_linear_networks_respond_as_before_the_labels(kind, samples):
    """New directions of the inputs pass through weights that the labels know nothing of."""
    net = network("linear", width=60, depth=3, kind=kind)
    K0 = ft.input_kernel(X[:4], net)
    found, prior = ft.posterior(net, K0, Y[:2], 0.2, samples=samples), ft.solve(net, K0)
    assert np.abs(found.kernel_shift[-1]).max() > 0.02
    for name in NAMES:
        np.testing.assert_allclose(getattr(found, name), getattr(prior, name), rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, samples", [("erf", 20_000), ("relu", 20_000), slow("gelu", 200_000)]
)
def test_paths_against_series(activation, samples):
    """ReLU has no series: half the paths against the other half, and the differences of G11."""
    net = network(activation)
    K0 = ft.input_kernel(X[:4], net)
    found = ft.posterior(net, K0, Y[:3], 0.2, samples=samples, seed=1)
    other = ft.posterior(net, K0, Y[:3], 0.2, exact=True)
    for name in ("response_shift", "output_response_shift"):
        error = np.hypot(getattr(found, f"{name}_error"), getattr(other, f"{name}_error"))
        apart = np.abs(getattr(found, name) - getattr(other, name))
        assert (apart <= 4.5 * error + 1e-13).all(), name
    assert found.response_shift_error.max() < 0.1 * np.abs(found.response_shift).max()


@pytest.mark.slow
@pytest.mark.parametrize("entry", [(3, 3), (3, 4)])
@pytest.mark.parametrize("width, samples", [(40, 200_000), (120, 200_000)])
def test_networks_drawn_from_the_prior_and_weighted(width, samples, entry):
    net, labels, noise = network("erf", width), np.array([2.0, -2.0, 2.5]), 0.3
    K0 = ft.input_kernel(X, net)
    layers = [(0.9, 0.36 * 1.5, 0.36 * 0.1)] * 2 + [(0.9, 1.5, 0.1)]
    learned, errors, effective = weighted_prior.learned_response(
        erf, K0, labels, noise, width, layers, samples, 1, entry, 0.05
    )
    assert effective > 25_000
    found = ft.posterior(net, K0, labels, noise, exact=True)
    shift = found.response_shift[:, *entry]
    expected = np.append(shift[1:] - 0.81 * shift[:-1], found.output_response_shift[entry])
    allowed = 4 * errors + found.expansion_ratio * np.abs(expected)
    assert (np.abs(learned - expected) <= allowed).all()
    # It is there, and so is its sign.
    assert np.abs(expected[-1]) > 8 * errors[-1]


def test_blocks_need_smooth_functions():
    with pytest.raises(ValueError, match="of blocks need φ without kinks, and .* got relu"):
        ft.posterior(network("relu", kind="block"), np.eye(2), [1.0], 0.1).response  # noqa: B018


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(tilting, "RUNS", 4)
    for name in ("STANDARD", "MEAN_FIELD"):
        monkeypatch.setattr(tilting, name, tilting.STANDARD._replace(moves=120, left_out=60))
    monkeypatch.setattr(tilting, "_check", lambda *_: None)


def tilted(net, K0, **settings):
    return ft.tilted_posterior(net, K0, 2 * Y[:2, 0], 0.2, **settings)


def along_entries(activation):
    """A network, K0 and a change of two entries without labels that do not meet."""
    net = network(activation, width=12, depth=1 if activation == "erf" else 3)
    K0 = ft.input_kernel(X, net)
    change = np.zeros_like(K0)
    change[2, 2] = change[3, 4] = change[4, 3] = 1e-3
    return net, K0, change


def of_layers(found, end=""):
    """Responses of C^(1), ..., C^(L+1)."""
    hidden, output = (getattr(found, f"{name}{end}") for name in (NAMES[0], NAMES[2]))
    return np.append(hidden[1:], output[None], axis=0)


@pytest.mark.parametrize("settings", [{}, {"readout_scale": 0.7}])
def test_differences_of_tilted_kernels_of_linear_networks(settings):
    net, K0, change = along_entries("linear")
    more, less = (tilted(net, K0 + x * change, **settings).residual_kernels for x in (1, -1))
    found = tilted(net, K0, **settings)
    for entry in ((2, 2), (3, 4)):
        expected = (more - less)[1:, *entry] / (2 * change[entry])
        np.testing.assert_allclose(of_layers(found)[:, *entry], expected, rtol=1e-6)
    assert not found.response_error.any()
    # They respond as the prior but for what P ~ N labels do to the sizes of weights.
    assert 0 < found.output_response_shift[0, 0] or settings


@pytest.mark.parametrize(
    "activation, settings",
    [
        slow("erf", {"samples": 240_000}),
        slow("erf", {"samples": 360_000, "readout_scale": 0.7}),
        slow("gelu", {"samples": 360_000}),
    ],
)
def test_differences_of_tilted_kernels(activation, settings, short, monkeypatch):
    """Common random numbers at two K0."""
    runs, moments = [], tilting._moments
    monkeypatch.setattr(
        tilting, "_moments", lambda *all: (runs.append([r[0] for r in all[1]]), moments(*all))[1]
    )
    net, K0, change = along_entries(activation)
    found, *_ = [tilted(net, K0 + sign * change, **settings) for sign in (0, 1, -1)]
    each = np.subtract(*map(np.array, runs[1:3]))[:, 1:]
    for entry in ((2, 2), (3, 4)):
        others = each[..., *entry] / (2 * change[entry])
        values, error = (of_layers(found, end)[:, *entry] for end in ("", "_error"))
        # Of four runs.
        error = np.hypot(error, others.std(axis=0) / len(others) ** 0.5)
        assert (abs(values - others.mean(axis=0)) <= 6 * error).all()
        assert (error < 0.1 * values).all()


@pytest.mark.filterwarnings("ignore:.*labels are few")
def test_tilted_responses_of_inputs_with_labels_and_of_wide_networks(short, tmp_path):
    net = network("erf", width=12, depth=1)
    K0 = ft.input_kernel(np.concatenate([X[:2], X[:2] * (1 + 1e-6)]), net)
    found = tilted(net, K0, samples=2400)
    shift = found.response_shift
    assert found.response_error.shape == found.response.shape
    np.testing.assert_allclose(shift[:, 2:, 2:], shift[:, :2, :2], rtol=1e-3, atol=1e-9)
    assert shift[1:].all() and found.response_error[1:].all()
    assert found.to_xarray()["response"].dims == ("hidden_layer", "input", "input_")
    found.save(tmp_path / "tilted.npz")
    loaded = ft.load(tmp_path / "tilted.npz")
    np.testing.assert_array_equal(vars(loaded)["response"], found.response)
    wide = tilted(net.replace(width=10**9), K0, samples=4800)
    for name in ("response_shift", "output_response_shift"):
        values, errors = getattr(wide, name), getattr(wide, f"{name}_error")
        assert (abs(values) <= 7 * errors + 1e-13).all()
    assert wide.output_response_error.max() < 0.2 * wide.output_response.max()
    with pytest.raises(ValueError, match="need φ with a continuous slope, got relu"):
        tilted(network("relu"), K0, samples=2400).response  # noqa: B018


@pytest.mark.slow
def test_scaling_with_the_largest_response_after_labels():
    """From the posterior at three ρ around that of the prior, of G11 as a whole."""
    net = ft.ResidualNetwork(depth=2, width=500)
    K0, labels, noise = np.array([[0.05, 0.03], [0.03, 0.05]]), [1.5], 0.2
    best = ft.optimal_scaling(net, K0)
    found = ft.optimal_scaling(net, K0, labels=labels, noise_variance=noise)
    step = 0.02
    for entry, allowed in (((1, 1), 0.1), ((0, 1), 0.2)):
        rho = best[entry] * np.exp(step * np.arange(-1, 2))
        wide, shift = [], []
        for scale in rho:
            learned = ft.posterior(net.replace(branch_scale=scale), K0, labels, noise)
            shift.append(learned.output_response_shift[entry])
            prior = ft.solve(net.replace(branch_scale=scale), K0)
            wide.append(prior.output_response[entry])
        ratio, height = np.divide(shift, wide), np.log(wide)
        slope = (ratio[2] - ratio[0]) / (2 * step)
        curvature = (height[2] - 2 * height[1] + height[0]) / step**2
        expected = -best[entry] * slope / curvature
        assert abs(found[entry] - best[entry] - expected) < allowed * abs(expected)
        assert abs(expected) > 1e-4
