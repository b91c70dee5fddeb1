"""Averages of two Gaussian signals at any angle, by two nested integrals on graded panels."""

import numpy as np

X, W = np.polynomial.legendre.leggauss(24)
# Nodes of the outer integral done together.
TOGETHER = 64


def graded(centres, finest, reach):
    """Cuts of [-reach, reach], (..., n): around every centre at finest times powers of two."""
    centres = np.asarray(centres, dtype=float)
    count = int(np.ceil(np.log2(2 * reach / finest))) + 1
    steps = finest * 2.0 ** np.arange(count)
    around = np.concatenate([[0.0], steps, -steps])
    cuts = (centres[..., None] + around).reshape(*centres.shape[:-1], -1)
    even = np.broadcast_to(np.linspace(-reach, reach, 19), (*cuts.shape[:-1], 19))
    return np.sort(np.clip(np.concatenate([cuts, even], axis=-1), -reach, reach), axis=-1)


def on_panels(cuts):
    half, middle = np.diff(cuts)[..., None] / 2, (cuts[..., 1:] + cuts[..., :-1])[..., None] / 2
    shape = (*cuts.shape[:-1], -1)
    return (middle + half * X).reshape(shape), (half * W).reshape(shape)


def bell(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def average(F, kinks, K_xx, K_yy, angle):
    """<F(x) F(y)> of a function that varies over distances of one, and about its kinks."""
    dev = np.sqrt(K_xx)
    slope, width = np.sqrt(K_yy / K_xx) * np.cos(angle), np.sqrt(K_yy) * np.sin(angle)
    centres = np.array([0.0, *kinks])
    finest = min(0.25, width / 4) / max(1.0, abs(slope)) / dev
    x, weights = on_panels(graded([*(centres / dev), *(centres / slope / dev)], finest, 9.0))
    total = 0.0
    for start in range(0, len(x), TOGETHER):
        z, w = x[start : start + TOGETHER], weights[start : start + TOGETHER]
        mean = slope * dev * z
        cuts = graded((centres - mean[:, None]) / width, min(1.0, 0.25 / width), 9.0)
        v, inner = on_panels(cuts)
        given = (inner * bell(v) * F(mean[:, None] + width * v)).sum(axis=1)
        total += (w * bell(z) * F(dev * z) * given).sum()
    return total
