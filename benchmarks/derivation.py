"""Time of the symbolic derivation, its growth with depth, and the ratio to a naive one.

The naive derivation differentiates the whole action before it sets the conjugates to zero, and
inverts S21 with SymPy's general inverse.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import sympy as sp
from sympy.core.cache import clear_cache

import fieldtheory as ft


def seconds(task: Callable[[], object]) -> float:
    """Wall time of a task from empty caches."""
    clear_cache()
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def derivation(depth: int, inputs: int) -> None:
    """Action, saddle point, Hessian and the propagators G12 and G11."""
    theory = ft.derive(depth, inputs)
    assert theory.saddle_point.kernels and theory.propagator.G11.shape


def naive(depth: int) -> None:
    """S21 and S22 of one input from the whole action, and G12 by a general inverse."""
    action = ft.derive(depth).network_action
    zero = dict.fromkeys(action.conjugates, sp.S.Zero)
    size = len(action.kernels)
    slopes = [action.expression.diff(c) for c in action.conjugates]
    S21 = sp.Matrix(size, size, lambda k, l: slopes[k].diff(action.kernels[l]).xreplace(zero))
    sp.Matrix(size, size, lambda k, l: slopes[k].diff(action.conjugates[l]).xreplace(zero))
    assert (-S21.inv()).shape == (size, size)


def main() -> None:
    print("whole derivation, seconds")
    for depth, inputs in ((10, 1), (3, 2)):
        time_taken = seconds(partial(derivation, depth, inputs))
        print(f"  depth {depth:2d}, {inputs} input(s): {time_taken:6.2f}")
    print("growth with depth, one input")
    for depth in (2, 5, 10, 20):
        print(f"  depth {depth:2d}: {seconds(partial(derivation, depth, 1)):6.2f}")
    print("naive derivation / this one")
    for depth in (1, 2, 3):
        ratio = seconds(partial(naive, depth)) / seconds(partial(derivation, depth, 1))
        print(f"  depth {depth:2d}: {ratio:6.1f}")


if __name__ == "__main__":
    main()
