"""What is trained and how fast, against gradients of finite networks with explicit weights."""

import json

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.tangent.parametrizations import checked_rates, trained
from tests.examples import K0_PAIR
from tests.oracles import gradients, recursion
from tests.tables import slow

X = np.array([[1.0, 0.5, -0.3], [0.8, 0.2, 0.4]])
NET = ft.ResidualNetwork(
    depth=2,
    activation="tanh",
    branch_scale=[0.4, 0.6],
    skip_scale=[1.0, 0.8],
    weight_variance=1.5,
    bias_variance=0.2,
    readin_weight_variance=1.2,
    readin_bias_variance=0.3,
    readout_weight_variance=1.4,
    readout_bias_variance=0.1,
    input_dim=3,
)
ORACLE = recursion.Net(NET.branch_scale, NET.skip_scale, 1.5, 0.2, 1.4, 0.1)
READIN, K0 = (1.2, 0.3), ft.input_kernel(X, NET)
PHI = {
    "tanh": (np.tanh, lambda h: 1 / np.cosh(h) ** 2),
    "relu": (lambda h: np.maximum(h, 0), lambda h: (h > 0).astype(float)),
    "linear": (lambda h: h, np.ones_like),
}
UPPER = np.triu_indices(2)
LAST = NET.depth + 2


def rates(weights, biases):
    """Those of the read-in, the layers and the readout, by kinds of parameters."""
    found = {}
    for kind, each in (("weight", weights), ("bias", biases)):
        found |= {f"readin_{kind}": each[0], kind: each[1:-1], f"readout_{kind}": each[-1]}
    return found


def test_the_backward_pass_gives_the_gradients():
    weights = gradients.draw(ORACLE, 4, 3, 1, 1, np.random.default_rng(0), READIN)
    found = gradients.contributions(ORACLE, *PHI["tanh"], weights, X)
    expected = gradients.by_differences(ORACLE, PHI["tanh"][0], weights, X)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one[0], other, rtol=1e-7, atol=1e-9)


class Sampled:
    """Contributions of all layers at two widths, of weights over N, extrapolated to N → ∞.

    ``seen`` is the fraction of it by which a theory that is wrong is noticed.
    """

    def __init__(self, name, widths=(16, 32), samples=(6000, 12_000)):
        self.parts = []
        for N, count in zip(widths, samples, strict=True):
            of_weights, of_biases = gradients.sample(ORACLE, *PHI[name], N, X, count, 1, READIN)
            fans = np.array([3, *[N] * (LAST - 1)])
            self.parts.append((of_weights[:, :, *UPPER] / fans[:, None], of_biases[:, :, *UPPER]))
        self.net, self.seen = NET.replace(activation=name), 0.06 if name == "relu" else 0.02

    def estimate(self, of_weights, of_biases):
        """The mean of a sum over layers with these factors, and its standard error."""
        sums = [
            np.einsum("l,slp->sp", of_weights, w) + np.einsum("l,slp->sp", of_biases, b)
            for w, b in self.parts
        ]
        if len(sums) == 1:
            return sums[0].mean(axis=0), sums[0].std(axis=0) / len(sums[0]) ** 0.5
        few, many = sums
        mean = 2 * many.mean(axis=0) - few.mean(axis=0)
        return mean, np.sqrt(4 * many.var(axis=0) / len(many) + few.var(axis=0) / len(few))


@pytest.fixture(scope="module", params=["tanh", "relu"])
def sampled(request):
    return Sampled(request.param)


WEIGHT_VARIANCES = np.array([1.2, 1.5, 1.5, 1.4])
BIAS_VARIANCES = np.array([0.3, 0.2, 0.2, 0.1])
ONES, FROZEN_IN, FROZEN_OUT = np.ones(LAST), np.r_[0.0, np.ones(3)], np.r_[np.ones(3), 0.0]
RATES = {
    "all": (ONES, ONES),
    "read-in frozen": (FROZEN_IN, FROZEN_IN),
    "readout frozen": (FROZEN_OUT, FROZEN_OUT),
    "biases frozen": (ONES, 0 * ONES),
    "rates of layers": (np.array([0.1, 0.5, 2.0, 0.3]), np.array([3.0, 0.0, 1.0, 0.5])),
}


@pytest.mark.slow_but(2, 3, 4, 7, 8, 9)
@pytest.mark.parametrize("case", RATES)
def test_ntk_parametrization(sampled, case):
    w, b = RATES[case]
    mean, error = sampled.estimate(w * WEIGHT_VARIANCES, b * BIAS_VARIANCES)
    found = ft.tangent_kernels(sampled.net, K0, rates(w, b))
    theory = found.output_tangent_kernel[UPPER]
    assert (np.abs(theory - mean) < 4 * error).all()
    seen = sampled.seen if case == "all" else 2 * sampled.seen
    assert (np.abs((1 + seen) * theory - mean) > 4 * error).any()


@pytest.mark.parametrize("layer", range(LAST))
def test_standard_parametrization_layer_by_layer(sampled, layer):
    """The weights, then the biases of one layer alone; weights count fan-in times as much."""
    one, none = np.eye(LAST)[layer], np.zeros(LAST)
    width = sampled.net.width
    for w, b in ((one, none), (none, one)):
        found = ft.tangent_kernels(sampled.net, K0, rates(w, b), "standard")
        theory = found.output_tangent_kernel[UPPER]
        if w.any():
            theory = theory / (3 if layer == 0 else width)
        mean, error = sampled.estimate(w, b)
        assert (np.abs(theory - mean) <= 4 * error + 1e-12).all()
        assert (np.abs((1 + 2 * sampled.seen) * theory - mean) > 4 * error).any()


def test_linear_networks_of_any_width():
    """The mean over networks is that of N → ∞ at N = 2."""
    sampled = Sampled("linear", widths=(2,), samples=(60_000,))
    mean, error = sampled.estimate(WEIGHT_VARIANCES, BIAS_VARIANCES)
    theory = ft.solve(sampled.net, K0).output_tangent_kernel[UPPER]
    assert (np.abs(theory - mean) < 4 * error).all()
    assert (np.abs(1.02 * theory - mean) > 4 * error).all()


def test_everything_is_rate_one():
    for net in (NET, NET.replace(branch_scale=[[0.1], [0.2]])):
        found = trained(net, "ntk", checked_rates(net, None))
        expected = Trained.everything(net)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-15)
        np.testing.assert_allclose(found.biases, expected.biases, rtol=1e-15)
    same = ft.tangent_kernels(NET, K0, parametrization="NTK")
    assert same.parametrization == "ntk"
    expected = ft.solve(NET, K0).tangent_kernels
    np.testing.assert_allclose(same.tangent_kernels, expected, rtol=1e-14)


@pytest.mark.parametrize("K", [0.6, slow(np.array([[0.6, 0.4], [0.4, 0.9]]))], ids=["one", "pair"])
def test_rates_add_up(K):
    """Θ is linear in the rates, as the parts have it, and the output is what all layers give."""
    rng = np.random.default_rng(0)
    given = rates(*rng.uniform(0, 2, (2, LAST)))
    frozen = dict.fromkeys(NET.trained, 0.0)
    for kind in ("ntk", "standard"):
        whole = ft.tangent_kernels(NET, K, given, kind)
        found = []
        for name, parts in zip(NET.trained, whole.parts, strict=True):
            layers = [0] if name.startswith("readin") else [LAST - 1]
            hidden = name in ("weight", "bias")
            for l in range(1, LAST - 1) if hidden else layers:
                alone = np.eye(NET.depth)[l - 1] * given[name] if hidden else given[name]
                found.append(ft.tangent_kernels(NET, K, frozen | {name: alone}, kind))
                np.testing.assert_allclose(
                    parts[l], found[-1].output_tangent_kernel, rtol=1e-12, atol=1e-15
                )
        total = sum(each.tangent_kernels for each in found)
        alone = ft.tangent_kernels(NET, K, given, kind).output_tangent_kernel
        np.testing.assert_allclose(whole.tangent_kernels, total, rtol=1e-12)
        np.testing.assert_allclose(whole.parts.sum(axis=(0, 1)), alone, rtol=1e-12)
        np.testing.assert_allclose(alone, whole.tangent_kernels[-1], rtol=1e-14)
        np.testing.assert_array_equal(whole.output_tangent_kernel, whole.tangent_kernels[-1])


def test_a_readout_that_learns_alone_sees_the_kernel():
    last = np.eye(LAST)[-1]
    found = ft.tangent_kernels(NET, K0, rates(last, last))
    np.testing.assert_allclose(
        found.output_tangent_kernel, ft.solve(NET, K0).output_kernel, rtol=1e-15
    )
    assert not found.tangent_kernels[:-1].any()


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
@pytest.mark.parametrize("K", [0.6, K0_PAIR + 0.3], ids=["one", "pair"])
def test_files_tables_and_plots(K, suffix, tmp_path):
    given = {"readin_weight": 0, "weight": [1, 0.5], "readout_weight": 2}
    found = ft.tangent_kernels(NET, K, given, "standard", rtol=1e-11)
    _ = found.parts
    found.save(tmp_path / f"t{suffix}")
    loaded = ft.TangentKernels.load(tmp_path / f"t{suffix}")
    assert (loaded.network, loaded.parametrization, loaded.rtol) == (NET, "standard", 1e-11)
    np.testing.assert_array_equal(loaded.rates, found.rates)
    np.testing.assert_array_equal(loaded.parts, found.parts)
    assert found.rates[::2].tolist() == [[0, 0, 0, 0], [0, 1, 0.5, 0], [0, 0, 0, 2]]
    np.testing.assert_array_equal(loaded.tangent_kernels, found.tangent_kernels)
    np.testing.assert_array_equal(loaded.output_tangent_kernel, found.output_tangent_kernel)
    rows = found.rows()
    assert json.loads(json.dumps(rows))[-1]["Theta"] == found.tangent_kernels[-1].flat[-1]
    assert len(found.plot().axes) == 1
    labelled = found.to_xarray()
    assert labelled.rates.dims == ("trained", "layer")
    assert labelled.trained.values.tolist() == list(NET.trained)
    assert labelled.tangent_kernels.attrs["symbol"] == r"\Theta^{(l)}"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"parametrization": "pytorch"}, "parametrization must be one of ntk, standard, got 'py"),
        ({"rates": {"weight": [1, 2, 3]}}, r"rates\['weight'\] must be a number or 2 of them"),
        ({"rates": {"bias": np.ones((2, 5))}}, r"a number or 2 of them, got shape \(2, 5\)"),
        ({"rates": {"readin_bias": [1]}}, r"rates\['readin_bias'\] must be a number, got shape"),
        ({"rates": {"weight": -1}}, r"rates\['weight'\] must be >= 0, got -1.0"),
        ({"rates": {"bias": np.nan}}, r"rates\['bias'\] must be finite"),
        ({"rates": {"inner_weight": 0}}, "rates must be one of readin_weight, .*'inner_weight'"),
        ({"rtol": 1.0}, "rtol must be a number from"),
        ({"parametrization": "standard", "K0": 0.2}, "K0 must have variances of at least readin"),
        ({"rates": {"readin_weight": 2.0}, "K0": 0.2}, r"readin_bias_variance=0\.3, .* got 0\.2$"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ft.tangent_kernels(**{"network": NET, "K0": 0.6} | arguments)


def test_arguments_that_are_of_no_use():
    with pytest.raises(TypeError, match="must be a real number or an array"):
        ft.tangent_kernels(NET, 0.6, {"weight": "fast"})
    with pytest.raises(TypeError, match="rates must map kinds of parameters to rates, got 0.5"):
        ft.tangent_kernels(NET, 0.6, 0.5)
    with pytest.raises(TypeError, match="network must be"):
        ft.tangent_kernels(3, 0.6)
    net = NET.replace(readin_weight_variance=0.0)
    with pytest.raises(ValueError, match="readin_weight_variance must be positive, .* got 0"):
        ft.tangent_kernels(net, 0.6, parametrization="standard")
    ft.tangent_kernels(net, 0.6, {"readin_weight": 0}, "standard")
    with pytest.raises(ValueError, match="must have no jumps"):
        _ = ft.tangent_kernels(NET.replace(activation="sign"), 0.6).tangent_kernels


def test_weights_that_start_at_zero_are_trained():
    """σ_w = 0: nothing to train in the parametrisation of Jacot et al., all of it in the other."""
    net = NET.replace(weight_variance=0.0)
    hidden = rates([0, 1, 1, 0], np.zeros(4))
    assert not ft.tangent_kernels(net, 0.6, hidden, "ntk").output_tangent_kernel.any()
    assert ft.tangent_kernels(net, 0.6, hidden, "standard").output_tangent_kernel > 1
