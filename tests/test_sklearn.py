"""Estimators and kernels of scikit-learn made from networks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import fieldtheory as ft
from fieldtheory.inference.kernel_function import KernelFunction
from fieldtheory.sklearn import NetworkGPClassifier, NetworkGPRegressor, NetworkKernel
from tests.rounding import assert_same

NETWORK = ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.4, weight_variance=2.0)


def digits(count):
    X, y = load_digits(return_X_y=True)
    X = X - X.mean(axis=1, keepdims=True)
    X *= np.sqrt(X.shape[1]) / np.linalg.norm(X, axis=1, keepdims=True)
    return X[:count], y[:count], X[-300:], y[-300:]


@parametrize_with_checks([NetworkGPRegressor(), NetworkGPClassifier()])
def test_checks_of_scikit_learn(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("SCIPY_ARRAY_API is not set, without which scikit-learn skips it")
    check(estimator)


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("targets", [(), (2,)])
def test_regressor_is_that_of_scikit_learn(normalize_y, targets):
    """GaussianProcessRegressor with the same kernel and noise, to the last shape."""
    rng = np.random.default_rng(1)
    X, Z, y = rng.normal(size=(20, 3)), rng.normal(size=(4, 3)), 5 + rng.normal(size=(20, *targets))
    ours = NetworkGPRegressor(NETWORK, noise_variance=0.1, normalize_y=normalize_y)
    kernel = NetworkKernel(NETWORK, free=())
    theirs = GaussianProcessRegressor(kernel, alpha=0.1, normalize_y=normalize_y, optimizer=None)
    for fitted in (False, True):
        samples = [model.sample_y(Z, n_samples=20_000, random_state=3) for model in (ours, theirs)]
        assert samples[0].shape == samples[1].shape
        for moment in (np.mean, np.std):
            found, expected = (moment(drawn, axis=-1) for drawn in samples)
            np.testing.assert_allclose(found, expected, atol=0.05 * samples[1].std())
        if fitted:
            break
        ours.fit(X, y), theirs.fit(X, y)
    for options in ({"return_std": True}, {"return_cov": True}):
        both = zip(ours.predict(Z, **options), theirs.predict(Z, **options), strict=True)
        for found, expected in both:
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-6)
    with pytest.raises(ValueError, match="at most one of return_std and return_cov"):
        ours.predict(Z, return_std=True, return_cov=True)
    evidence = theirs.log_marginal_likelihood_value_
    assert ours.log_evidence_ == pytest.approx(evidence, rel=1e-9)


def test_probabilities_can_be_calibrated():
    pytest.importorskip("sklearn", minversion="1.8", reason="has no calibration by temperature")
    X, y, Z, labels = digits(500)
    plain = NetworkGPClassifier(NETWORK)
    calibrated = CalibratedClassifierCV(plain, method="temperature", cv=3)
    losses = [log_loss(labels, of.fit(X, y).predict_proba(Z)) for of in (plain, calibrated)]
    assert losses[1] < 0.6 * losses[0]


@pytest.mark.parametrize(
    ("estimator", "ask", "wanted"),
    [
        (NetworkGPRegressor, lambda e, Z: e.predict(Z), [(5, 30)]),
        (NetworkGPRegressor, lambda e, Z: e.predict(Z, return_std=True), [(5, 30), (5,)]),
        (NetworkGPRegressor, lambda e, Z: e.predict(Z, return_cov=True), [(5, 30), (5, 5)]),
        (NetworkGPClassifier, lambda e, Z: e.predict(Z), [(5, 30)]),
        (NetworkGPClassifier, lambda e, Z: e.predict_proba(Z), [(5, 30), (5,)]),
    ],
)
def test_no_entry_of_a_kernel_is_computed_twice_or_unasked(estimator, ask, wanted, monkeypatch):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((30, 3)), rng.standard_normal((5, 3))
    fitted, computed = estimator(NETWORK).fit(X, X[:, 0] > 0), []
    for name in ("__call__", "diagonal"):
        function = getattr(KernelFunction, name)

        def counted(*args, function=function):
            values = function(*args)
            computed.append(values.shape)
            return values

        monkeypatch.setattr(KernelFunction, name, counted)
    ask(fitted, Z)
    assert computed == wanted


def test_parameters_of_the_network_are_searched():
    X, y, *_ = digits(120)
    grid = {"network__depth": [2, 20], "network__branch_scale": [0.1, 1.0]}
    search = GridSearchCV(NetworkGPClassifier(NETWORK), grid, cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4 and search.best_score_ > 0.8
    assert search.best_estimator_.network.depth in (2, 20)
    assert NETWORK.depth == 5
    estimator = clone(NetworkGPClassifier(NETWORK)).set_params(network__depth=7, noise_variance=0.5)
    assert estimator.network.depth == 7 and estimator.noise_variance == 0.5
    assert estimator.get_params()["network__depth"] == 7
    with pytest.raises(ValueError, match="rho__depth"):
        estimator.set_params(rho__depth=1)
    for owner in (estimator, NetworkKernel(NETWORK)):
        with pytest.raises(ValueError, match="did you mean depth"):
            owner.set_params(network__dept=1)
        with pytest.raises(ValueError, match="'nose_variance'|nose_variance"):
            owner.set_params(nose_variance=1)
        with pytest.raises(TypeError, match="depth must be an integer"):
            owner.set_params(network__depth="deep")


def test_digits_are_learned_and_probabilities_are_probabilities():
    X, y, Z, labels = digits(500)
    classifier = NetworkGPClassifier(NETWORK, noise_variance=1e-3).fit(X, y)
    assert classifier.score(Z, labels) > 0.92
    P = classifier.predict_proba(Z)
    assert P.min() >= 0 and P.sum(axis=1) == pytest.approx(1)
    assert np.mean(classifier.classes_[P.argmax(axis=1)] == classifier.predict(Z)) == 1
    # Sure where it is right: the predicted share of right answers is near the true one.
    assert abs(P.max(axis=1).mean() - classifier.score(Z, labels)) < 0.2


def test_bad_input():
    X, y = [[1.0], [2.0]], [1.0, 2.0]
    for change, error, words in (
        ({"network": "relu"}, TypeError, "network must be a ResidualNetwork"),
        ({"quantity": "tangent"}, ValueError, "one of output_kernel, tangent_kernel, got 'tang"),
        ({"quantity": "output_response"}, ValueError, "quantity must be one of"),
        ({"noise_variance": -1.0}, ValueError, "noise_variance must be"),
    ):
        with pytest.raises(error, match=words):
            NetworkGPRegressor(**change).fit(X, y)
    with pytest.raises(ValueError, match="y must be numbers: .*'a'.*; see NetworkGPClassifier"):
        NetworkGPRegressor().fit(X, ["a", "b"])
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        NetworkGPClassifier().fit(X, ["a", "a"])
    with pytest.raises(ValueError, match="Unknown label type"):
        NetworkGPClassifier().fit(X, [0.5, 1.7])


class TestNetworkKernel:
    X = np.random.default_rng(0).standard_normal((6, 3))

    def test_is_the_output_kernel(self):
        kernel = NetworkKernel(NETWORK)
        assert kernel(self.X) == pytest.approx(ft.kernel(NETWORK)(self.X))
        assert kernel(self.X, self.X[:2]) == pytest.approx(ft.kernel(NETWORK)(self.X, self.X[:2]))
        assert kernel.diag(self.X) == pytest.approx(np.diagonal(kernel(self.X)))
        assert not kernel.is_stationary()

    def test_gradient_by_differences(self):
        kernel = NetworkKernel(NETWORK)
        _, gradient = kernel(self.X, eval_gradient=True)
        for index in range(3):
            step = 1e-5 * np.eye(3)[index]
            more, less = (kernel.clone_with_theta(kernel.theta + s)(self.X) for s in (step, -step))
            assert gradient[..., index] == pytest.approx((more - less) / 2e-5, rel=1e-7, abs=1e-8)

    def test_algebra_and_evidence(self):
        kernel = ConstantKernel(2.0) * NetworkKernel(NETWORK, free=("branch_scale",))
        kernel = kernel + WhiteKernel(0.1)
        assert len(kernel.theta) == 3 and clone(kernel) == kernel
        moved = kernel.clone_with_theta(kernel.theta + 0.1)
        assert moved.k1.k2.network.branch_scale == pytest.approx(0.4 * np.exp(0.1))
        assert NETWORK.branch_scale == 0.4
        rng = np.random.default_rng(0)
        y = rng.multivariate_normal(np.zeros(60), kernel(X := rng.standard_normal((60, 3))))
        model = GaussianProcessRegressor(kernel).fit(X, y)
        assert model.log_marginal_likelihood_value_ >= model.log_marginal_likelihood(kernel.theta)

    def test_what_is_free_if_left_out(self):
        """Names of schedules and variances of zero have no logarithm; searches may set them."""
        network = ft.ResidualNetwork(depth=3, branch_scale="uniform", bias_variance=0.0)
        kernel = NetworkKernel(network)
        assert "weight_variance=1.25)" in repr(kernel) and kernel.theta.shape == (1,)
        X = np.linspace(-2, 2, 9)[:, None]
        _, slopes = kernel(X, eval_gradient=True)
        assert slopes.shape == (9, 9, 1)
        search = GridSearchCV(
            GaussianProcessRegressor(kernel, alpha=1e-3, optimizer=None),
            {"kernel__network__branch_scale": ["uniform", 0.5]},
            cv=2,
        ).fit(X, X[:, 0] ** 2)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_classifier_of_scikit_learn(self):
        X, y, Z, labels = digits(60)
        model = GaussianProcessClassifier(NetworkKernel(NETWORK), optimizer=None).fit(X, y)
        assert model.score(Z, labels) > 0.6

    def test_bad_input(self):
        with pytest.raises(ValueError, match="free must name.*'bias_variance', which is 0.0"):
            _ = NetworkKernel(NETWORK.replace(bias_variance=0.0), free=("bias_variance",)).theta
        with pytest.raises(ValueError, match="free must name.*'width'"):
            _ = NetworkKernel(NETWORK, free=("width",)).theta
        with pytest.raises(ValueError, match="Gradient can only be evaluated when Y is None"):
            NetworkKernel(NETWORK)(self.X, self.X, eval_gradient=True)


@pytest.mark.slow
def test_order_1_is_the_posterior_of_finite_width():
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(12, 3)), 3 + rng.normal(size=12), rng.normal(size=(4, 3))
    network = NETWORK.replace(width=200)
    model = NetworkGPRegressor(network, noise_variance=0.5, order=1, normalize_y=True).fit(X, y)
    mean, deviation = model.predict(Z, return_std=True)
    scaled = (y - y.mean()) / y.std()
    found = ft.posterior(network, Y=scaled, noise_variance=0.5, X=X, X_test=Z)
    np.testing.assert_allclose(mean, y.mean() + y.std() * found.mean[12:])
    np.testing.assert_allclose(deviation, y.std() * np.sqrt(found.variance[12:]))
    assert_same(mean, model.predict(Z))
    wide = clone(model).set_params(order=0).fit(X, y)
    assert 0 < abs(model.log_evidence_ - wide.log_evidence_) < 1
    assert 0 < np.abs(mean - wide.predict(Z)).max() < 0.3
    for arguments in ({"return_cov": True}, {}):
        with pytest.raises(ValueError, match="order"):
            model.predict(Z, **arguments) if arguments else model.sample_y(Z)
    for wrong in ({"order": 2}, {"quantity": "tangent_kernel"}):
        with pytest.raises(ValueError, match="order"):
            clone(model).set_params(**wrong).fit(X, y)
