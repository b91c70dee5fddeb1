"""Networks as estimators and kernels of scikit-learn, infinitely wide or to order 1/N.

They need the extra ``data``. Parameters of the network are set and searched through
``network__depth``, ``network__branch_scale`` and so on, as those of nested estimators are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fieldtheory import inference, validation
from fieldtheory.networks.family import DeepNetwork, deep_network
from fieldtheory.networks.residual import ResidualNetwork

_NESTED = "network__"
# What a kernel object optimises if that is not said.
_USUAL = ("weight_variance", "bias_variance", "branch_scale")


class _OfNetwork:
    """Parameters of the network as nested parameters of what is made from it."""

    network: DeepNetwork | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep`` those of the network as ``network__depth``, ..."""
        parameters = super().get_params(deep=False)  # type: ignore[misc]
        if deep and isinstance(self.network, DeepNetwork):
            parameters |= _nested(self.network)
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by the names that `get_params` gives them; ValueError for others."""
        own = {name: value for name, value in parameters.items() if "__" not in name}
        super().set_params(**own)  # type: ignore[misc]
        changes = {}
        for name in parameters.keys() - own:
            if not name.startswith(_NESTED):
                raise ValueError(f"unknown parameter {name!r}: nested are network__... alone")
            changes[name.removeprefix(_NESTED)] = parameters[name]
        if changes:
            current = _network_of(self.network)
            try:
                self.network = current.replace(**changes)
            except TypeError as error:
                if {*changes} <= {f.name for f in fields(current)}:
                    raise
                raise ValueError(f"of the network, {error}") from None
        return self


def _kernel(network: Any, quantity: str) -> inference.KernelFunction:
    # Responses and hidden layers have functions of inputs too, which are no priors of outputs.
    quantity = validation.quantity("quantity", quantity, ("output_kernel", "tangent_kernel"))
    return inference.kernel(_network_of(network), quantity)


class _NetworkEstimator(_OfNetwork, BaseEstimator):
    posterior_: inference.Posterior

    def __init__(
        self,
        network: DeepNetwork | None = None,
        *,
        quantity: str = "output_kernel",
        noise_variance: float = 1e-2,
        jitter: float = 0.0,
    ) -> None:
        self.network = network
        self.quantity = quantity
        self.noise_variance = noise_variance
        self.jitter = jitter

    def _condition(self, X: np.ndarray, y: np.ndarray) -> None:
        kernel = _kernel(self.network, self.quantity)
        self.posterior_ = inference.condition(kernel, X, y, self.noise_variance, self.jitter)

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validation.without_tensors(X)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    @property
    def log_evidence_(self) -> float:
        """ln p(y) of the training values, to compare networks by."""
        check_is_fitted(self)
        return self.posterior_.log_evidence


class NetworkGPRegressor(RegressorMixin, MultiOutputMixin, _NetworkEstimator):
    """Bayesian regression with a network: a Gaussian process (SR eq. (10)), or to order 1/N.

    Parameters
    ----------
    network : DeepNetwork, optional
        The prior; ``ft.ResidualNetwork(depth=10)`` if left out. Its ``width`` counts at order 1.
    quantity : {"output_kernel", "tangent_kernel"}
        The kernel of the Gaussian process; also "nngp" and "ntk".
    noise_variance : float
        σ² of the noise in the targets.
    jitter : float
        Added to the diagonal of the kernel besides.
    order : {0, 1}
        0 for infinite width; 1 for predictions, standard deviations and log evidence to order 1/N,
        by `fieldtheory.posterior`. Its time grows as the square of all inputs, and predictions are
        reproducible for the same X; those of parts of it differ by the errors of sampling.
    normalize_y : bool
        Whether the targets are taken minus their mean, which is zero a priori, and over their
        standard deviation, as by scikit-learn's ``GaussianProcessRegressor``; ``noise_variance``,
        ``posterior_`` and ``log_evidence_`` are then those of the normalised targets.

    Attributes
    ----------
    posterior_ : fieldtheory.inference.Posterior
        With the log evidence and the divergence from the prior.
    log_evidence_ : float
        ln p(y).
    n_features_in_ : int

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from sklearn.model_selection import GridSearchCV
    >>> X = np.linspace(-2, 2, 12)[:, None]
    >>> regressor = NetworkGPRegressor(ft.ResidualNetwork(depth=3), noise_variance=1e-3)
    >>> regressor.fit(X, np.sin(X[:, 0])).predict([[0.0]], return_std=True)[1].shape
    (1,)
    >>> search = GridSearchCV(regressor, {"network__depth": [1, 10]}, cv=3)
    >>> search.fit(X, np.sin(X[:, 0])).best_params_["network__depth"] in (1, 10)
    True
    """

    def __init__(
        self,
        network: DeepNetwork | None = None,
        *,
        quantity: str = "output_kernel",
        noise_variance: float = 1e-2,
        jitter: float = 0.0,
        order: int = 0,
        normalize_y: bool = False,
    ) -> None:
        super().__init__(network, quantity=quantity, noise_variance=noise_variance, jitter=jitter)
        self.order = order
        self.normalize_y = normalize_y

    def fit(self, X: Any, y: Any) -> Self:
        """Condition on inputs X (P, d) and targets y (P,) or (P, n)."""
        X, y = validation.without_tensors(X), validation.without_tensors(y)
        if self.order not in (0, 1):
            raise ValueError(f"order must be 0 or 1, got {self.order!r}")
        if self.order and _kernel(self.network, self.quantity).quantity != "output_kernel":
            raise ValueError(f"order 1 is of the output_kernel, got quantity={self.quantity!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        try:
            y = np.asarray(y, dtype=float)
        except ValueError as error:
            raise ValueError(f"y must be numbers: {error}; see NetworkGPClassifier") from None
        self._centre, self._scale = np.zeros(y.shape[1:]), np.ones(y.shape[1:])
        if self.normalize_y:
            self._centre, deviation = y.mean(axis=0), y.std(axis=0)
            self._scale = np.where(deviation > 0, deviation, 1.0)
        self._condition(X, (y - self._centre) / self._scale)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean at X (R, d); with it the standard deviation (R,) or covariance (R, R).

        Both are of the function, without the noise; of n targets they have a last axis for them.
        """
        if return_std and return_cov:
            raise ValueError("at most one of return_std and return_cov may be True")
        X = self._inputs(X)
        if self.order:
            if return_cov:
                raise ValueError("return_cov is of order 0: order 1 has variances alone")
            finite, new = self._finite(X), slice(len(self.posterior_.X), None)
            mean = self._mean(finite.mean[new])
            deviation = self._scale * np.sqrt(np.maximum(finite.variance[new], 0.0))
            return (mean, deviation) if return_std else mean
        if return_std:
            mean, variance = self.posterior_.mean_and_variance(X)
            return self._mean(mean), np.multiply.outer(np.sqrt(variance), self._scale)
        if return_cov:
            mean, covariance = self.posterior_.mean_and_covariance(X)
            return self._mean(mean), np.multiply.outer(covariance, self._scale**2)
        return self._mean(self.posterior_.mean(X))

    @property
    def log_evidence_(self) -> float:
        """ln p(y) of the training values, to compare networks by; to order 1/N at order 1."""
        return float(self._finite(None).log_evidence) if self.order else super().log_evidence_

    def _finite(self, X: np.ndarray | None) -> inference.NetworkPosterior:
        """The posterior to order 1/N, with X as test inputs."""
        check_is_fitted(self)
        wide = self.posterior_
        noise = wide.noise_variance + wide.jitter
        return inference.posterior(
            _network_of(self.network), Y=wide.y, noise_variance=noise, X=wide.X, X_test=X
        )

    def _mean(self, normalised: np.ndarray) -> np.ndarray:
        return np.asarray(self._centre + self._scale * normalised)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Functions drawn from the posterior at X (R, d), or from the prior before `fit`.

        As of scikit-learn's ``GaussianProcessRegressor``, shape (R, n_samples) or
        (R, n, n_samples).

        Examples
        --------
        >>> NetworkGPRegressor().sample_y([[0.0], [1.0]], n_samples=3).shape
        (2, 3)
        """
        if self.order:
            raise ValueError("sample_y draws Gaussian functions: use order=0")
        rng = check_random_state(random_state)
        if hasattr(self, "posterior_"):
            mean, covariance = self.posterior_.mean_and_covariance(self._inputs(X))
            centre, scale = self._mean(mean), self._scale
        else:
            X = check_array(validation.without_tensors(X), dtype=np.float64)
            covariance = _kernel(self.network, self.quantity)(X)
            centre, scale = np.zeros(len(covariance)), np.ones(())
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = np.tensordot(root, rng.standard_normal((*centre.shape, n_samples)), 1)
        return np.asarray(centre[..., None] + scale[..., None] * drawn)


class NetworkGPClassifier(ClassifierMixin, _NetworkEstimator):
    """Classification by regression of class indicators with an infinitely wide network.

    Every class has a target, 1 for its members and 0 for others, minus their mean 1/n, and the
    class of the largest posterior mean is predicted (SR section 7).

    `predict_proba` gives the probability that the output of a class is the largest under the
    posterior of that regression. It is no likelihood of labels: its sureness is set by the size of
    the kernel and the noise, not by how often the labels are right, and it is mostly too unsure.
    500 of scikit-learn's digits are learned to 98 % with a mean largest probability of 0.85 and a
    log loss of 0.21. For probabilities of labels calibrate it on held-out samples, with
    ``sklearn.calibration.CalibratedClassifierCV(classifier, method="temperature")`` (from
    scikit-learn 1.8 on) for instance: 0.98 and 0.07.

    Parameters
    ----------
    network, quantity, noise_variance, jitter
        As for `NetworkGPRegressor`.

    Attributes
    ----------
    classes_ : ndarray, shape (n,)
    posterior_, log_evidence_, n_features_in_
        As for `NetworkGPRegressor`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["left", "left", "right", "right"]
    >>> classifier = NetworkGPClassifier(ft.ResidualNetwork(depth=3)).fit(X, y)
    >>> [str(name) for name in classifier.predict([[-1.5], [1.5]])]
    ['left', 'right']
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Condition on inputs X (P, d) and labels y (P,) of at least two classes."""
        X, y = validation.without_tensors(X), validation.without_tensors(y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, place = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_[0]}")
        self._condition(X, np.eye(count)[place] - 1 / count)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The labels of the largest posterior means at X (R, d), shape (R,)."""
        X = self._inputs(X)
        return np.asarray(self.classes_[np.argmax(self.posterior_.mean(X), axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class to have the largest output, shape (R, n).

        Of the posterior of the outputs, not calibrated as one of labels: see the class.
        """
        X = self._inputs(X)
        mean, variance = self.posterior_.mean_and_variance(X)
        return inference.largest_probabilities(mean, np.sqrt(variance))


class NetworkKernel(_OfNetwork, Kernel):
    """The kernel of an infinitely wide network as a kernel object of scikit-learn.

    For its ``GaussianProcessRegressor``, ``GaussianProcessClassifier`` and the algebra of kernels;
    the hyperparameters that they find are logarithms of parameters of the network.

    Parameters
    ----------
    network : DeepNetwork, optional
        ``ft.ResidualNetwork(depth=10)`` if left out.
    quantity : {"output_kernel", "tangent_kernel"}
    free : sequence of str, optional
        The parameters to optimise, positive numbers of the network; if left out those of
        ``weight_variance``, ``bias_variance`` and ``branch_scale`` that are. Empty for none.
    limits : pair of float
        Bounds of each.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> kernel = NetworkKernel(ft.ResidualNetwork(depth=3, branch_scale=0.5))
    >>> X = np.linspace(-2, 2, 12)[:, None]
    >>> model = GaussianProcessRegressor(kernel, alpha=1e-4).fit(X, np.sin(X[:, 0]))
    >>> model.kernel_.network.branch_scale != 0.5
    True
    """

    def __init__(
        self,
        network: DeepNetwork | None = None,
        quantity: str = "output_kernel",
        free: Sequence[str] | None = None,
        limits: tuple[float, float] = (1e-3, 1e3),
    ) -> None:
        self.network = network
        self.quantity = quantity
        self.free = free
        self.limits = limits

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Those of the network used if ``network`` is None too, since `theta` is made of them."""
        return super().get_params(deep) | (_nested(_network_of(self.network)) if deep else {})

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """One for every free parameter, by its name in `get_params`."""
        network = _network_of(self.network)
        usual = [name for name in _USUAL if _is_positive(getattr(network, name, None))]
        names = usual if self.free is None else self.free
        for name in names:
            if not _is_positive(value := getattr(network, name, None)):
                raise ValueError(
                    "free must name parameters of the network that are positive numbers, got "
                    f"{name!r}, which is {value!r}"
                )
        return [Hyperparameter(f"{_NESTED}{name}", "numeric", self.limits) for name in names]

    @property
    def _free(self) -> dict[str, float]:
        names = [each.name.removeprefix(_NESTED) for each in self.hyperparameters]
        return {name: getattr(_network_of(self.network), name) for name in names}

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """The kernel (P, Q) of the rows of X and Y; with its gradient by `theta`, (P, P, n)."""
        function = _kernel(self.network, self.quantity)
        if not eval_gradient:
            return function(X, Y)
        if Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        slopes = [value * function.derivative(name, X) for name, value in self._free.items()]
        matrix = function(X)
        return matrix, np.stack(slopes, axis=-1) if slopes else np.empty((*matrix.shape, 0))

    def diag(self, X: Any) -> np.ndarray:
        """The kernel of every row of X with itself."""
        return _kernel(self.network, self.quantity).diagonal(X)

    def is_stationary(self) -> bool:
        """False: networks see more than differences of inputs."""
        return False

    def __repr__(self) -> str:
        net = _network_of(self.network)
        values = ", ".join(f"{name}={value:.3g}" for name, value in self._free.items())
        return f"NetworkKernel({net.activation.name}, depth={net.depth}; {values})"


def _nested(network: DeepNetwork) -> dict[str, Any]:
    return {f"{_NESTED}{f.name}": getattr(network, f.name) for f in fields(network)}


def _network_of(network: Any) -> DeepNetwork:
    if network is None:
        return ResidualNetwork(depth=10)
    return deep_network(network, "NetworkGPRegressor")


def _is_positive(value: Any) -> bool:
    return isinstance(value, float) and value > 0
