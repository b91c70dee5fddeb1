"""One unit of attention: a head, or heads that share keys and values, averaged over its weights.

With R̂ the Gram matrix of the tokens that it reads and A = softmax(z), z_ac = q_a·k_c, a head adds

    c = w (1/d) Σ_k (A v_k)(A v_k)ᵀ,   C = w ⟨B⟩,   B = A R̂ Aᵀ,   w = ρ² σ_o² σ_v²

to the kernel, and Cov(c_ab, c_ef)/w² = Cov(B_ab, B_ef) + (1/d) ⟨B_ae B_bf + B_af B_be⟩. Averages
are over q and k, Gaussians over the tokens with covariances Q = σ_q² R̂ + b_q and σ_k² R̂ + b_k: L g
with Q = L Lᵀ and the same normal numbers g for every R̂, each with −g. Biases of values add b_v/σ_v²
to all entries of R̂ in B, those of outputs ρ² b_o to C.

Derivatives are those of such averages along the flow N q of q that follows Q + t δ, and of k alike:
N(t) = 1 + t N₁ + t² N₂ + ..., N Q Nᵀ = Q + t δ. An entry of B feels of the q those of its two
tokens alone: in the Jacobian only these are moved, with the part of Q that is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from fieldtheory.numerics.covariance_roots import lower_root
from fieldtheory.numerics.symmetric_matrices import packed, positions, unpacked

# Independent sets of draws, from whose scatter the standard errors come.
RUNS = 8
# Most numbers in one array of a chunk of draws.
_CHUNK = 2**21
# Most numbers of a run that are kept, and most dimensions of Sobol sequences; beyond these numbers
# are plain random ones, drawn again in every step, in the single precision that sampling leaves.
_MOST_KEPT = 2**22
_MOST_DIMENSIONS = qmc.Sobol.MAXDIM
# Smallest eigenvalue of R̂, relative to the largest, whose inverse has digits left.
_SINGULAR = 1e-10


class Head(NamedTuple):
    """Parameters of the heads of one layer: w, σ_q², σ_k², what multiplies q·k, and of biases.

    ``value_bias`` is that of v over σ_v², ``out_bias`` what all heads together add to C.
    """

    weight: float
    query: float
    key: float
    logit: float
    query_bias: float
    key_bias: float
    value_bias: float
    out_bias: float

    @property
    def has_logits(self) -> bool:
        """Whether the softmax differs from head to head."""
        return bool(self.logit * (self.query + self.query_bias) * (self.key + self.key_bias))

    def queries(self, R: np.ndarray) -> np.ndarray:
        """The covariance of q over the tokens."""
        return self.query * R + self.query_bias

    def keys(self, R: np.ndarray) -> np.ndarray:
        """The covariance of k over the tokens."""
        return self.key * R + self.key_bias


class Moments(NamedTuple):
    """The mean of c, (p,), its covariance and the Jacobian of its mean by R̂, (p, p)."""

    mean: np.ndarray
    covariance: np.ndarray
    jacobian: np.ndarray


@dataclass(frozen=True, eq=False)
class Attention:
    """How tokens attend, the same in all layers.

    Parameters
    ----------
    mask : ndarray of bool, shape (P, P)
        Which tokens c a token a sees.
    head_width, grouped : int
        d, and the number of heads that share keys and values.
    turns : ndarray of complex, shape (P, d/2), optional
        By what rotary positions turn the planes of q and k.
    epsilon : float, optional
        Of the norm of q and k; None without.
    draws : int
        Of one run, each of them used with both signs.
    seed : int
    fixed : bool
        Whether A is the same for all q and k, so that averages are exact.
    """

    mask: np.ndarray
    head_width: int
    grouped: int
    turns: np.ndarray | None
    epsilon: float | None
    draws: int
    seed: int
    fixed: bool = False

    @cached_property
    def _kept(self) -> dict[int, np.ndarray]:
        """Sobol sequences of the runs, drawn once."""
        return {}

    def _normals(self, run: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """g of queries (n, g, P, d) and keys (n, 1, P, d), in chunks of arrays of ``size`` each."""
        shape = self.grouped + 1, len(self.mask), self.head_width
        generator = np.random.default_rng([self.seed, run])
        numbers, chunk = int(np.prod(shape)), max(1, _CHUNK // (size * self.grouped))
        sobol = numbers <= _MOST_DIMENSIONS and numbers * self.draws <= _MOST_KEPT
        if sobol and run not in self._kept:
            points = qmc.Sobol(numbers, rng=generator).random(self.draws)
            # They are multiples of 2^-64 in [0, 1).
            self._kept[run] = ndtri(np.clip(points, 2.0**-64, 1 - 2.0**-53)).reshape(-1, *shape)
        for start in range(0, self.draws, chunk):
            if sobol:
                g = self._kept[run][start : start + chunk]
            else:
                n = min(chunk, self.draws - start)
                g = generator.standard_normal((n, *shape), dtype=np.float32)
            yield g[:, :-1], g[:, -1:]

    def _normed(self, x: list[np.ndarray]) -> tuple[list[np.ndarray], Any]:
        """q or k of length √d, with the coefficients of t and t², and the factor of the first."""
        if self.epsilon is None:
            return x, 1.0

        def product(i: int, j: int) -> np.ndarray:
            return np.mean(x[i] * x[j], axis=-1, keepdims=True)

        s = product(0, 0) + self.epsilon
        r = [s**-0.5]
        if len(x) > 1:
            first, second = 2 * product(0, 1) / s, (product(1, 1) + 2 * product(0, 2)) / s
            r += [-r[0] * first / 2, r[0] * (3 * first**2 / 8 - second / 2)]
        return [sum(r[j] * x[i - j] for j in range(i + 1)) for i in range(len(x))], r[0]

    def _turned(self, x: np.ndarray) -> np.ndarray:
        """As planes, x_j + i x_{j + d/2}, turned by their positions; or as they are."""
        return x if self.turns is None else self._planes(x) * self.turns

    def _planes(self, x: np.ndarray) -> np.ndarray:
        half = self.head_width // 2
        return np.asarray(x[..., :half] + 1j * x[..., half:])

    def softmax(self, z: np.ndarray) -> np.ndarray:
        """A, over the tokens that are seen."""
        A = np.where(self.mask, z, -np.inf)
        A -= A.max(-1, keepdims=True)
        np.exp(A, out=A)
        A /= A.sum(-1, keepdims=True)
        return A

    def _signals(
        self, R: np.ndarray, head: Head, run: int, size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """q and k before norms and positions."""
        of_queries, of_keys = lower_root(head.queries(R)), lower_root(head.keys(R))
        for g, keys in self._normals(run, size):
            yield of_queries.astype(g.dtype) @ g, of_keys.astype(g.dtype) @ keys

    def logits(self, factor: float, q: list[np.ndarray], k: list[np.ndarray]) -> list[np.ndarray]:
        """z = factor × q·k, normed and turned, and its coefficients of t and t², (n, g, P, P)."""
        q, k = ([*map(self._turned, self._normed(x)[0])] for x in (q, k))
        k = [np.conj(x).swapaxes(-1, -2) for x in k]
        each = (sum(q[j] @ k[i - j] for j in range(i + 1)) for i in range(len(q)))
        return [factor * np.real(z) for z in each]

    def mean(self, R: np.ndarray, head: Head, run: int) -> np.ndarray:
        """C, (P, P)."""
        P, L = len(R), lower_root(R + head.value_bias)
        total = np.zeros((P, P))
        for q, k in self._signals(R, head, run, P * max(P, self.head_width)):
            (z,) = self.logits(head.logit, [q], [k])
            for sign in (1, -1):
                M = self.softmax(sign * z) @ L.astype(z.dtype)
                M = M.reshape(-1, P, P).swapaxes(0, 1).reshape(P, -1)
                total += M @ M.T
        return head.weight * total / (2 * self.draws * self.grouped) + head.out_bias

    def moments(self, R: np.ndarray, head: Head, run: int) -> Moments:
        """Mean, covariance and Jacobian of c."""
        P, g, values = len(R), self.grouped, R + head.value_bias
        pairs = np.triu_indices(P)
        mean, square = np.zeros(len(pairs[0])), np.zeros((len(pairs[0]),) * 2)
        wick, explicit = np.zeros((P * P, P * P)), np.zeros((P * P, P * P))
        # Their axes are a, b, e and a, c, b, e.
        by_queries, by_keys = np.zeros((P, P, P)), np.zeros((P, P, P, P))
        for q, k in self._signals(R, head, run, P * P * max(P, self.head_width)):
            (z,) = self.logits(head.logit, [q], [k])
            n = len(z)
            moves = self._moves(head, q, k, z)
            for sign in (1, -1):
                A = self.softmax(sign * z)
                read = A @ values
                # X of heads h and h', whose diagonal h = h' is B.
                X = read[:, :, None] @ A.swapaxes(-1, -2)[:, None]
                B = X[:, range(g), range(g)]
                own = packed(B.mean(1))
                mean += own.sum(0)
                square += own.T @ own
                flat = X.reshape(-1, P * P)
                wick += flat.T @ flat
                A = A.reshape(n * g, P, P)
                flat = A.reshape(n * g, -1)
                explicit += flat.T @ flat
                if self.fixed:
                    continue
                W = read.reshape(A.shape).swapaxes(1, 2)[:, None] - B.reshape(A.shape)[:, :, None]
                W = sign * A[..., None] * W
                by_queries += (W.swapaxes(2, 3) @ moves[0]).sum(0)
                by_keys += np.moveaxis(W, 0, -1) @ np.moveaxis(moves[1], 0, 2)
        total = 2 * self.draws
        mean /= total
        covariance = square / total - mean[:, None] * mean
        wick = wick.reshape((P,) * 4) / (total * g**2)
        (a, b), (e, f) = ([x[:, None] for x in pairs], pairs)
        covariance += (wick[a, e, b, f] + wick[a, f, b, e]) / self.head_width
        jacobian = 0.0 if self.fixed else self._derivatives(R, head, by_queries, by_keys)
        explicit = explicit.reshape((P,) * 4)
        jacobian = jacobian + (explicit[a, e, b, f] + explicit[a, f, b, e]) / np.where(e == f, 2, 1)
        jacobian *= head.weight / (total * g)
        mean = head.weight * mean + head.out_bias
        return Moments(mean, head.weight**2 * covariance, jacobian)

    def _moves(
        self, head: Head, q: np.ndarray, k: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What q_a moving by q_e, and k_c by k_e, does to z_ac: (n g, a, c, e), some axes 1."""
        k = np.broadcast_to(k, q.shape)
        q, k = (x.reshape(-1, *x.shape[2:]) for x in (q, k))
        z = z.reshape(-1, *z.shape[2:])
        by_keys = self._moves_of(head, k, q, z)
        return self._moves_of(head, q, k, z.swapaxes(1, 2)).swapaxes(1, 2), by_keys

    def _moves_of(self, head: Head, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """What x_c moving by x_e does to z_ac = y_a·x_c: (n, a, c, e)."""
        (unit,), r = self._normed([x])
        other = self._turned(self._normed([y])[0][0])
        if self.turns is None:
            moves = (other @ x.swapaxes(1, 2))[:, :, None]
        else:
            turned = np.conj(other)[:, :, None] * self.turns
            moves = np.real(turned @ self._planes(x).swapaxes(1, 2)[:, None])
        moves = head.logit * moves
        if self.epsilon is not None:
            along = (unit @ x.swapaxes(1, 2)) / self.head_width
            moves = r[:, None] * (moves - z[..., None] * along[:, None])
        return np.asarray(moves)

    def _derivatives(
        self, R: np.ndarray, head: Head, by_queries: np.ndarray, by_keys: np.ndarray
    ) -> np.ndarray:
        """The Jacobian (p, p) of what q and k move, from their sums over draws.

        Those are ⟨Σ_c ∂B_ab/∂z_ac q_e·∂z_ac/∂q_a⟩, (a, b, e), and the like of k_c, (a, c, b, e).
        """
        P = len(R)
        a, b = np.triu_indices(P)
        places = positions(len(a))
        directions = unpacked(np.eye(len(a)), True)
        moved = flow(head.keys(R), head.key * directions)[0].reshape(len(a), -1)
        D = (by_keys.swapaxes(1, 2).reshape(P * P, -1) @ moved.T).reshape(P, P, -1)
        i, j = np.indices((P, P))
        own, other = by_queries[i, j, i], by_queries[i, j, j]
        Q = head.queries(R)
        with np.errstate(divide="ignore", invalid="ignore"):
            determinant = np.diag(Q)[:, None] * np.diag(Q) - Q**2
            by_own = (np.diag(Q) * own - Q * other) / (2 * determinant)
            by_pair = (np.diag(Q)[:, None] * other - Q * own) / (2 * determinant)
        diagonal = np.arange(P)
        by_own[diagonal, diagonal] = own[diagonal, diagonal] / (2 * np.diag(Q))
        by_pair[diagonal, diagonal] = 0.0
        if head.query:
            np.add.at(D, (i, j, places[i, i]), head.query * by_own)
            np.add.at(D, (i, j, places[i, j]), head.query * by_pair)
        return np.asarray(D[a, b] + D[b, a])

    def curvature(self, R: np.ndarray, head: Head, V: np.ndarray, run: int) -> np.ndarray:
        """C'':V/2, (p,): the term of t² along random δ with ⟨δ δ⟩ = V."""
        P = len(R)
        if self.fixed:
            return np.zeros(len(V))
        scale, axes = np.linalg.eigh(V)
        deviations = axes * np.sqrt(np.clip(scale, 0, None))
        signs = np.random.default_rng([self.seed, run, len(V)])
        total, values = np.zeros((P, P)), R + head.value_bias
        for q, k in self._signals(R, head, run, P * max(P, self.head_width)):
            chosen = signs.integers(0, 2, (len(q), len(V))) * 2.0 - 1
            delta = unpacked(chosen @ deviations.T, True)[:, None]
            of_q = flow(head.queries(R), head.query * delta)
            of_k = flow(head.keys(R), head.key * delta)
            z = self.logits(head.logit, [q, *(N @ q for N in of_q)], [k, *(N @ k for N in of_k)])
            for sign in (1, -1):
                A, A1, A2 = self._softmax_terms(*(sign * each for each in z))
                half = A2 @ values @ A.swapaxes(-1, -2) + A1 @ delta @ A.swapaxes(-1, -2)
                both = A1 @ values @ A1.swapaxes(-1, -2)
                total += (half + half.swapaxes(-1, -2) + both).sum((0, 1))
        return head.weight * packed(total) / (2 * self.draws * self.grouped)

    def _softmax_terms(
        self, z: np.ndarray, z1: np.ndarray, z2: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        A = self.softmax(z)

        def centred(x: np.ndarray) -> np.ndarray:
            return np.asarray(x - (A * x).sum(-1, keepdims=True))

        moved = centred(z1)
        return A, A * moved, A * centred(z2 + moved**2 / 2)


def rotations(places: np.ndarray, base: float, head_width: int) -> np.ndarray:
    """e^(i a ω_j) of rotary positions a, ω_j = θ^(−2j/d), (..., d/2)."""
    speeds = base ** (-2 * np.arange(head_width // 2) / head_width)
    return np.asarray(np.exp(1j * places[..., None] * speeds))


def flow(R: np.ndarray, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N₁ and N₂: N = 1 + t δ R⁻¹/2 − t² (δ R⁻¹)²/8."""
    if not delta.any():
        return delta, delta
    sizes = np.linalg.eigvalsh(R)
    if sizes[0] <= _SINGULAR * sizes[-1]:
        raise ValueError(
            "K0 must have no tokens that depend linearly on others for terms of order 1/N, got "
            f"eigenvalues from {sizes[0]:.3g} to {sizes[-1]:.3g}; use fewer tokens or sequences"
        )
    half = delta @ (np.linalg.inv(R) / 2)
    return half, half @ half / -2
