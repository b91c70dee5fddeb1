"""Random activations of the promise: analytic between a few kinks and jumps, of moderate growth."""

from dataclasses import dataclass

import numpy as np
import sympy as sp
from hypothesis import assume
from hypothesis import strategies as st

h = sp.Symbol("h", real=True)

PIECES = (
    "0", "1", "h", "h**2", "tanh({a}*h)", "erf({a}*h)", "sin({a}*h)", "cos({a}*h)",
    "exp(-h**2/2)", "h*exp(-h**2/2)", "atan({a}*h)", "h/(1 + h**2)", "log(1 + h**2)",
    "1/(1 + exp(-{a}*h))", "sqrt(1 + h**2)",
)  # fmt: skip
numbers = st.fractions(-2, 2, max_denominator=8)
rates = st.sampled_from(["1/2", "1", "3/2", "2"])


@dataclass(frozen=True)
class Piecewise:
    """φ by its branches between points."""

    points: tuple
    branches: tuple

    @property
    def expression(self):
        """A Piecewise of SymPy."""
        pieces = [(f, h < p) for f, p in zip(self.branches, self.points, strict=False)]
        return sp.Piecewise(*pieces, (self.branches[-1], True))

    @property
    def mirrored(self):
        """φ(−h); at the points themselves it has the other branch, which no average sees."""
        return Piecewise(
            tuple(-p for p in reversed(self.points)),
            tuple(f.subs(h, -h) for f in reversed(self.branches)),
        )

    @property
    def text(self):
        """The same in the spelling of a shell, from the right to the left."""
        written = f"({self.branches[0]})"
        for p, f in zip(self.points, self.branches[1:], strict=True):
            written = f"where(h >= {p}, {f}, {written})"
        return written

    def __call__(self, values):
        functions = [sp.lambdify(h, f + 0 * h, "scipy") for f in self.branches]
        cuts = np.searchsorted([float(p) for p in self.points], values, side="right")
        return np.choose(cuts, [f(values) * np.ones_like(values) for f in functions])

    def __repr__(self):
        return str(self.expression)


@st.composite
def branches(draw):
    """c + s f(h)."""
    f = sp.sympify(draw(st.sampled_from(PIECES)).format(a=draw(rates)), {"h": h})
    scale, shift = draw(numbers), draw(st.one_of(st.just(0), numbers))
    return sp.Rational(str(shift)) + sp.Rational(str(scale)) * f


@st.composite
def activations(draw, most=3):
    """One to ``most`` kinks or jumps, or none; half of them are made continuous."""
    points = sorted(draw(st.sets(numbers, min_size=0, max_size=most)))
    points = [sp.Rational(str(p)) for p in points]
    pieces = [draw(branches()) for _ in range(len(points) + 1)]
    if draw(st.booleans()):
        for i, p in enumerate(points):
            pieces[i + 1] += (pieces[i] - pieces[i + 1]).subs(h, p)
    assume(any(f.has(h) for f in pieces))
    return Piecewise(tuple(points), tuple(pieces))
