"""Whether rules that end at so many standard deviations leave nothing out.

Where φ grows exponentially, the signals that count are as far out as it grows steeply: e^{βh} of
the variance K is largest under the Gaussian at β√K standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# What is negligible, and how many places a product is looked at on either side.
_FAINT, _PLACES = 1e-14, 24


def fades(
    f: Callable, g: Callable, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray, reach: float
) -> np.ndarray:
    """Whether f(x) g(y) is negligible under the Gaussian from so many standard deviations on.

    Both are taken as far out as each other, which they are if the correlation is ±1; weaker
    ones see less of the tails.

    Parameters
    ----------
    f, g : callable
        Vectorised functions of one variable.
    K_xx, K_yy, K_xy : ndarray, shape (m,)
        Variances and covariances.
    reach : float

    Returns
    -------
    ndarray of bool, shape (m,)

    Examples
    --------
    >>> K = np.array([0.1, 10.0])
    >>> fades(np.exp, np.exp, K, K, K / 2, 9.8).tolist()
    [True, False]
    """
    z = np.linspace(-reach, reach, 2 * _PLACES + 1)
    with np.errstate(all="ignore"):
        one, two = _sampled(f, K_xx, z), _sampled(g, K_yy, z)
        two = np.where((K_xy < 0)[:, None], two[:, ::-1], two)
        sizes = np.abs(one * two) * np.exp(-z * z / 2)
        ends = sizes[:, [0, -1]].max(axis=1)
        return (ends <= _FAINT * sizes.max(axis=1)) & np.isfinite(ends)


def _sampled(f: Callable, K: np.ndarray, z: np.ndarray) -> np.ndarray:
    variances, index = np.unique(K, return_inverse=True)
    signals = np.sqrt(variances)[:, None] * z
    return np.broadcast_to(f(signals), signals.shape)[index]
