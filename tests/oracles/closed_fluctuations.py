"""G11 of several inputs in closed form with mpmath, for φ = cos, sin, exp(−h²) and h².

Networks with γ = 1, σ_b = 0 and a readout of variance one. Averages of products of any number of
signals are elementary, so that correlators are differences with as many digits as it takes.
"""

from collections import Counter
from itertools import product

import mpmath as mp
import numpy as np

DIGITS = 120


def _waves(odd):
    def average(powers, K):
        total = mp.mpf(0)
        counts = []
        for power in powers:
            found = Counter()
            for signs in product((1, -1), repeat=power):
                found[sum(signs)] += int(np.prod(signs)) if odd else 1
            counts.append(found)
        for term in product(*(found.items() for found in counts)):
            wave = mp.matrix([k for k, _ in term])
            weight = mp.fprod(count for _, count in term)
            total += weight * mp.exp(-(wave.T * K * wave)[0] / 2)
        order = sum(powers)
        phase = mp.re(mp.mpc(0, -1) ** order) if odd else 1
        return total * phase / mp.mpf(2) ** order

    return average


def _bells(powers, K):
    return 1 / mp.sqrt(mp.det(mp.eye(len(powers)) + 2 * K * mp.diag(powers)))


def _squares(powers, K):
    return _wick([i for i, power in enumerate(powers) for _ in range(2 * power)], K)


def _wick(signals, K):
    if not signals:
        return mp.mpf(1)
    first, *others = signals
    return mp.fsum(
        K[first, other] * _wick(others[:i] + others[i + 1 :], K) for i, other in enumerate(others)
    )


AVERAGES = {
    "cos(h)": _waves(odd=False),
    "sin(h)": _waves(odd=True),
    "exp(-h**2)": _bells,
    "h**2": _squares,
}


def _mean(name, signals, K):
    """⟨Π φ(h_i)⟩ of signals that may be the same."""
    distinct = sorted(set(signals))
    block = mp.matrix([[K[i, j] for j in distinct] for i in distinct])
    return AVERAGES[name]([signals.count(i) for i in distinct], block)


def _gain(name, pair, entry, K):
    """∂⟨φ_α φ_β⟩/∂K_γδ."""
    (a, b), (c, d) = pair, entry

    def moved(value):
        shifted = K.copy()
        shifted[c, d] = shifted[d, c] = value
        return _mean(name, [a, b], shifted)

    return mp.diff(moved, K[c, d]) if {c, d} <= {a, b} else mp.mpf(0)


def G11(name, K0, depth, weight):
    """N G11 of all layers and pairs, (L + 2, L + 2, p, p), of σ²_w ρ² = ``weight``."""
    with mp.workdps(DIGITS):
        inputs = len(K0)
        pairs = [(i, j) for i in range(inputs) for j in range(i, inputs)]
        a = [mp.mpf(weight)] * depth + [mp.mpf(1)]
        kernels = [mp.matrix(np.asarray(K0).tolist())]
        for l in range(depth):
            K = kernels[-1].copy()
            for i, j in pairs:
                added = a[l] * _mean(name, [i, j], kernels[-1])
                K[i, j] = K[j, i] = kernels[-1][i, j] + added
            kernels.append(K)
        # Signals of all layers; the covariance of two layers is the kernel of the earlier one.
        joint = {
            (k * inputs + i, l * inputs + j): kernels[min(k, l)][i, j]
            for k, l in product(range(depth + 1), repeat=2)
            for i, j in product(range(inputs), repeat=2)
        }

        def connected(k, first, l, second):
            one, other = ([m * inputs + i for i in pair] for m, pair in ((k, first), (l, second)))
            means = _mean(name, one, joint) * _mean(name, other, joint)
            return a[k] * a[l] * (_mean(name, one + other, joint) - means)

        p = len(pairs)
        S22 = np.full((depth + 1, p, depth + 1, p), mp.mpf(0), dtype=object)
        for k, l in product(range(depth + 1), repeat=2):
            if k <= l:
                for (x, first), (y, second) in product(enumerate(pairs), repeat=2):
                    S22[k, x, l, y] = S22[l, y, k, x] = connected(k, first, l, second)
        # The response of layer l to sources in layer m.
        response = {}
        for l in range(depth + 1):
            gain = np.array([[a[l] * _gain(name, f, e, kernels[l]) for e in pairs] for f in pairs])
            for m in range(l + 1):
                before = sum((response[q, m] for q in range(m, l)), np.zeros((p, p), dtype=object))
                response[l, m] = gain @ before if m < l else np.eye(p, dtype=object)
        found = np.full((depth + 2, depth + 2, p, p), mp.mpf(0), dtype=object)
        for k, l in product(range(depth + 1), repeat=2):
            for m, n in product(range(k + 1), range(l + 1)):
                found[k + 1, l + 1] += response[k, m] @ S22[m, :, n] @ response[l, n].T
        return found
