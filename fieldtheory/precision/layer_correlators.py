"""⟨g(h^(k)) ; g(h^(l))⟩ of all pairs of layers with mpmath, to ``mpmath.mp.dps`` digits.

By a closed form if there is one. Else by Mehler's series of the correlation c_kl,

    ⟨F(x) ; F(y)⟩ = Σ_{n>0} F_n(K_k) F_n(K_l) c_klⁿ,
    ∂⟨F(x) ; F(y)⟩/∂K_xx = (1/2K_xx) Σ_{n>0} √((n+1)(n+2)) F_{n+2}(K_xx) F_n(K_yy) cⁿ    (Price)

with F = g(h, h) and its orthonormal Hermite coefficients, which each layer has once. Where the
series does not end soon and ⟨F'F'⟩ has a closed form (erf), by Price's theorem,

    ⟨F(x) ; F(y)⟩ = ∫_0^{K_xy} ⟨F'(x) F'(y)⟩_t dt,   t = √(K_xx K_yy) sin θ

by a Gauss-Legendre rule in θ. Other pairs without a series, strongly correlated ones of an F with
kinks, are integrated over both signals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import mpmath
import sympy as sp

from fieldtheory.averages import routes
from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.averages.nodes import float_forms
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.precise_rules import PRECISE, legendre, number
from fieldtheory.compiling.functions import lambdify
from fieldtheory.compiling.translation import resolve
from fieldtheory.precision.arithmetic import Arithmetic
from fieldtheory.precision.hermite_series import Sums, sums_of_layers
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, LayerAverages

# Orders after which an integral by Price's theorem is quicker than the series.
_ORDERS = 2048
# Nodes of its rules in digits, which grow until two agree.
_NODES, _MORE, _RULES = 2.0, 1.4, 6


@dataclass(frozen=True, eq=False)
class LayerCorrelators:
    """The connected correlators of all pairs of layers, see `arithmetic.Correlators`.

    >>> from fieldtheory.theory.elementary_averages import network_averages
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> linear = network_averages(ResidualNetwork(depth=1, activation="linear"))
    >>> LayerCorrelators(linear, [[1, 0.5], [0.5, 2]], [True, True]).connected[0][1]
    0.5
    """

    averages: LayerAverages
    # Cov(h^(k), h^(l)), (L + 1, L + 1).
    covariances: list[list[Any]]
    # Layers that enter: variances are positive, no two of them correlated entirely.
    used: list[bool]

    @cached_property
    def connected(self) -> list[list[Any]]:
        """⟨g(h^(k)) ; g(h^(l))⟩, (L + 1, L + 1)."""
        matrix = self._filled(0, self.averages.connected)
        for k, own in zip(self._layers, self._series.own, strict=True):
            matrix[k][k] = own
        return matrix

    @cached_property
    def slopes(self) -> list[list[Any]]:
        """∂⟨g(x) ; g(y)⟩/∂K_xx for x = h^(l), y = h^(k), k < l, else 0."""
        return self._filled(1, self.averages.connected.diff(K_XX))

    def _filled(self, which: int, expression: sp.Expr) -> list[list[Any]]:
        """The sums of the series for k < l, and where there is none the expression itself."""
        size = len(self.used)
        matrix = [[mpmath.mpf(0)] * size for _ in range(size)]
        sums, K = self._series.sums[which], self.covariances
        pairs = list(combinations(enumerate(self._layers), 2))
        left = [(K[l][l], K[k][k], K[k][l]) for (i, k), (j, l) in pairs if sums[i, j] is None]
        if self._mixed is not None and left:
            function = _integral(self._mixed if which == 0 else self._mixed.diff(K_XX), left)
        else:
            function = lambdify([K_XX, K_YY, K_XY], expression, "mpmath")
        for (i, k), (j, l) in pairs:
            value = sums[i, j]
            matrix[k][l] = function(K[l][l], K[k][k], K[k][l]) if value is None else value
            if which == 0:
                matrix[l][k] = matrix[k][l]
        return matrix

    @property
    def _layers(self) -> list[int]:
        return [l for l, used in enumerate(self.used) if used]

    @cached_property
    def _series(self) -> Sums:
        """Sums of the series; nothing for pairs with closed forms."""
        K = self.covariances
        variances = [K[l][l] for l in self._layers]
        if self._is_closed:
            function = lambdify([K_XX, K_YY, K_XY], self.averages.connected, "mpmath")
            return Sums.none([function(v, v, v) for v in variances])
        chain = [K[k][l] / mpmath.sqrt(K[k][k] * K[l][l]) for k, l in pairwise(self._layers)]
        most = None if self._mixed is None else _ORDERS
        return sums_of_layers(self.averages.square, variances, chain, most)

    @cached_property
    def _mixed(self) -> sp.Expr | None:
        """⟨F'(x) F'(y)⟩ of different layers if it has a closed form and the series may be long."""
        if self._is_closed or has_steps(self.averages.square):
            return None
        form = self.averages.connected.diff(K_XY).doit()
        return None if form.has(AverageNode) else form

    @cached_property
    def _is_closed(self) -> bool:
        """Whether nothing is left to integrate."""
        nodes = self.averages.connected.atoms(AverageNode)
        return all(resolve(node, "mpmath", {}).name == routes.CLOSED for node in nodes)


def _integral(mixed: sp.Expr, pairs: list[tuple[Any, ...]]) -> Any:
    """∫_0^{K_xy} of an expression by a rule that holds for the most correlated of the pairs."""
    theta = sp.Symbol("theta", real=True)
    scale = sp.sqrt(K_XX) * sp.sqrt(K_YY)
    integrand = mixed.subs(K_XY, scale * sp.sin(theta)) * scale * sp.cos(theta)
    function = lambdify([K_XX, K_YY, theta], integrand, "mpmath")

    def integral(nodes: int, a: Any, b: Any, c: Any) -> Any:
        half = mpmath.asin(c / mpmath.sqrt(a * b)) / 2
        rule = legendre(nodes, mpmath.mp.prec)
        return half * mpmath.fsum(w * function(a, b, half * (1 + x)) for x, w in rule)

    hardest = max(pairs, key=lambda of: (of[2] ** 2 / (of[0] * of[1]), of[0]))
    widest = max(pairs, key=lambda of: of[0])
    digits = mpmath.mp.dps
    with mpmath.workdps(digits + PRECISE.guard):
        values, nodes = None, int(_NODES * digits)
        for _ in range(_RULES):
            before, values = values, [integral(nodes, *of) for of in (hardest, widest)]
            if before and all(
                abs(new - old) <= abs(new) * mpmath.mpf(10) ** -digits
                for new, old in zip(values, before, strict=True)
            ):
                return lambda a, b, c: integral(fewer, a, b, c)
            fewer, nodes = nodes, int(_MORE * nodes)
    raise PrecisionError(f"⟨φ² ; φ²⟩ of layers did not reach {digits} digits with {fewer} nodes")


# The arithmetic of mpmath, to the digits ``mpmath.mp.dps`` at the time of a call.
MPMATH = Arithmetic(
    number=number,
    functions={**vars(mpmath), "sqrt": float_forms.MPMATH["sqrt"]},
    resolved=lambda node, functions: resolve(node, "mpmath", functions).value,
    correlators=LayerCorrelators,
)
