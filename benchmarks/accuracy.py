"""The float64 numbers of the package against intervals that are proven to contain the values.

A table of 1000 points, each a quantity of a network (all layers of it), an average, or an optimum.
The error is the distance of the float64 number from the interval, in units of the error that the
package states. Above 1 it is a bug, and the exit code is 1.

    python benchmarks/accuracy.py                     prints the table, in some minutes
    python benchmarks/accuracy.py docs/accuracy.md    and writes it between the markers of the page
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

import flint
import numpy as np

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.precision import enclosures
from fieldtheory.precision.ball_arithmetic import ball_arithmetic
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, X, Y

ACTIVATIONS = ("erf", "tanh", "gelu", "relu")
# What the package states, relative to the scale of a quantity.
STATED = {
    "averages of one signal": 1e-12,
    "averages of two signals": 1e-12,
    "kernels": 1e-11,
    "responses": 1e-11,
    "kernels of two inputs": 1e-11,
    "responses of two inputs": 1e-11,
    "G11": 1e-9,
    "K*_out": 1e-9,
    "c*": 1e-9,
    "ρ*": 1e-9,
}
# Digits of the intervals, and bits of averages.
DIGITS, BITS = 17, 90
# Variances and correlations of averages.
VARIANCES = np.geomspace(1e-8, 1e4, 13)
PAIRS = ((1e-8, 1e-6), (0.01, 0.5), (1.0, 2.0), (4.0, 5.0))
CORRELATIONS = (-0.9, -0.3, 0.5, 0.95)
# Networks: depths, residual scales and input kernels.
DEPTHS, SCALES, KERNELS = (1, 5, 50), (0.05, 0.3, 1.0), (1e-8, 1e-3, 0.05, 1.0, 1e2, 1e4)
MATRICES = ([[0.5, 0.2], [0.2, 0.7]], [[0.01, -0.005], [-0.005, 0.02]])
FLUCTUATING = tuple(product((1, 4, 10), SCALES, (1e-3, 0.05, 1.0)))
# Optima exist for these.
SATURATING, RATIOS, INPUTS = ("erf", "tanh", "sin"), (0.0, 0.02, 0.05), (1e-3, 0.05)


class Point(NamedTuple):
    """One row of the table; ``error`` computes its error in units of the stated one."""

    quantity: str
    activation: str
    where: str
    error: Callable[[], float]


def distance(quantity: str, float64: object, balls: object, scale: object) -> float:
    """The largest distance of numbers from their intervals, in units of the stated error."""
    with flint.ctx.workprec(200):
        found = 0.0
        each = np.broadcast_arrays(*(np.asarray(a, dtype=object) for a in (float64, balls, scale)))
        for number, ball, size in zip(*(a.ravel() for a in each), strict=True):
            outside = abs(flint.arb(float(number)) - ball.mid()) - ball.rad()
            if outside > 0:
                found = max(found, float(outside) / (STATED[quantity] * float(size)))
        return found


def points() -> Iterator[Point]:
    """All points, always the same."""
    for name in ACTIVATIONS:
        yield from _averages(name)
        yield from _of_networks(name)
    for name, ratio in product(SATURATING, RATIOS):
        yield from _optima(name, ratio)


def _averages(name: str) -> Iterator[Point]:
    functions = layer_functions(as_activation(name))
    averages = functions.averages
    of_one = {
        "second_moment": averages.moment,
        "susceptibility": averages.moment.diff(K_XX),
    }
    of_two = {
        "covariance": averages.covariance,
        "covariance_susceptibility": averages.covariance.diff(K_XY),
    }

    def one(K: float, which: str) -> float:
        ball, moment = exact([of_one[which], averages.moment], K)
        scale = float(moment) / (K if which == "susceptibility" else 1)
        return distance("averages of one signal", getattr(functions, which)(K), ball, scale)

    def two(K: tuple[float, float, float], which: str) -> float:
        if which == "connected":
            F, (a, b, c) = averages.square, map(flint.arb, K)
            with flint.ctx.workprec(BITS):
                ball = enclosures.correlator(F, F.subs(X, Y), (X, Y), [[a, c], [c, b]])
                own = [[enclosures.average(F**n, [X], [[k]]) for n in (1, 2)] for k in (a, b)]
                scale = np.prod([float(square - mean**2) for mean, square in own]) ** 0.5
        else:
            ball = exact(of_two[which], *K)
            moments = [float(exact(averages.moment, k)) for k in K[:2]]
            scale = np.prod(moments) ** 0.5
            if which == "covariance_susceptibility":
                scale /= np.prod(K[:2]) ** 0.5
        return distance("averages of two signals", getattr(functions, which)(*K), ball, scale)

    for K, which in product(VARIANCES, of_one):
        where = f"{which} at {K:.3g}"
        yield Point("averages of one signal", name, where, lambda K=K, w=which: one(float(K), w))
    for (a, b), r, which in product(PAIRS, CORRELATIONS, (*of_two, "connected")):
        where, K = f"{which} at {a:g}, {b:g}, correlation {r:g}", (a, b, float(r * (a * b) ** 0.5))
        yield Point("averages of two signals", name, where, lambda K=K, w=which: two(K, w))


def exact(expression: object, *K: float) -> object:
    """A symbolic average, or a list of them, in balls at K_xx, or at K_xx, K_yy, K_xy."""
    with flint.ctx.workprec(BITS):
        arguments = [K_XX, K_YY, K_XY][: len(K)]
        return ball_arithmetic().compiled(arguments, expression)(*map(flint.arb, K))


def _of_networks(name: str) -> Iterator[Point]:
    def error(quantity: str, field: str, network: ft.ResidualNetwork, K0: object) -> float:
        proven = ft.solve(network, K0, digits=DIGITS, proven=True)
        found = ft.solve(network, K0)
        balls, numbers = getattr(proven, field), getattr(found, field)
        if field == "response":
            balls = np.append(balls, [proven.output_response], axis=0)
            numbers = np.append(numbers, [found.output_response], axis=0)
        scale = np.abs(numbers)
        if field == "G11":
            scale = np.max(scale)
        elif np.ndim(K0) == 2 and field == "kernels":
            roots = np.sqrt(np.diagonal(scale, axis1=1, axis2=2))
            scale = roots[:, :, None] * roots[:, None, :]
        return distance(quantity, numbers, balls, scale)

    tasks = [
        (quantity, field, depth, rho, K0)
        for depth, rho, K0 in product(DEPTHS, SCALES, KERNELS)
        for quantity, field in (("kernels", "kernels"), ("responses", "response"))
    ]
    tasks += [
        (f"{quantity} of two inputs", field, depth, rho, K0)
        for depth, rho, K0 in product((1, 5), (0.1, 1.0), MATRICES)
        for quantity, field in (("kernels", "kernels"), ("responses", "response"))
    ]
    fluctuating = list(FLUCTUATING)
    if name in ("erf", "relu"):
        fluctuating += list(product((1, 4, 10), SCALES, (1e4,)))
    if name == "erf":
        fluctuating.append((50, 0.05, 0.05))
    tasks += [("G11", "G11", *chosen) for chosen in fluctuating]
    for quantity, field, depth, rho, K0 in tasks:
        network = ft.ResidualNetwork(depth=depth, activation=name, branch_scale=rho)
        where = f"depth {depth}, ρ = {rho:g}, K0 = {K0}"
        given = quantity, field, network, K0
        yield Point(quantity, name, where, lambda given=given: error(*given))


def _optima(name: str, ratio: float) -> Iterator[Point]:
    network = ft.ResidualNetwork(depth=3, activation=name, weight_variance=1.0, bias_variance=ratio)

    def error(quantity: str, function: Callable, *arguments: object, **options: object) -> float:
        ball = function(*arguments, **options, digits=DIGITS, proven=True)
        number = function(*arguments, **options)
        return distance(quantity, number, ball, number)

    where = f"σ²_b/σ²_w = {ratio:g}"
    yield Point("K*_out", name, where, lambda: error("K*_out", ft.optimal_output_variance, network))
    for K0 in INPUTS:
        place = f"{where}, K0 = {K0:g}"
        yield Point(
            "c*",
            name,
            place,
            lambda K=K0: error("c*", ft.optimal_scaling, network, K, method="deep_limit"),
        )
        for depth in (2, 6, 20):
            deeper = network.replace(depth=depth)
            yield Point(
                "ρ*",
                name,
                f"{place}, depth {depth}",
                lambda net=deeper, K=K0: error("ρ*", ft.optimal_scaling, net, K),
            )


def table(chosen: list[Point], errors: list[float]) -> str:
    """The errors by quantity and activation, as Markdown."""
    groups: dict[tuple[str, str], list[float]] = {}
    for point, error in zip(chosen, errors, strict=True):
        groups.setdefault((point.quantity, point.activation), []).append(error)
    rows = [
        "| quantity | stated error | φ | points | largest error / stated | median |",
        "|---|---|---|---:|---:|---:|",
    ]
    for (quantity, activation), values in sorted(
        groups.items(), key=lambda item: list(STATED).index(item[0][0])
    ):
        size = f"{len(values)} | {max(values):.2g} | {np.median(values):.1g}"
        rows.append(f"| {quantity} | {STATED[quantity]:.0e} | {activation} | {size} |")
    names = ("fieldtheory-networks", "numpy", "scipy", "sympy", "python-flint")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    rows += ["", f"{len(errors)} points, {sum(e <= 1 for e in errors)} inside. Made by {versions}."]
    return "\n".join(rows)


def main() -> int:
    """Compute, print, and write the page that is named."""
    warnings.simplefilter("ignore")
    chosen, errors, start = list(points()), [], time.process_time()
    for number, point in enumerate(chosen, start=1):
        began = time.process_time()
        errors.append(point.error())
        if errors[-1] > 1:
            print("OUTSIDE", *point[:3], f"{errors[-1]:.3g}", flush=True)
        if (seconds := time.process_time() - began) > 5:
            print(f"{seconds:.0f} s", *point[:3], flush=True)
        if number % 100 == 0:
            print(f"{number} points, {time.process_time() - start:.0f} s", flush=True)
    text = table(chosen, errors)
    print(text)
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        old = page.read_text(encoding="utf-8")
        marked = re.compile("(<!-- table -->\n).*(<!-- end -->)", re.DOTALL)
        page.write_text(marked.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", old), encoding="utf-8")
    return int(max(errors) > 1)


if __name__ == "__main__":
    sys.exit(main())
