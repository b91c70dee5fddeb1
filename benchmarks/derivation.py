"""Time of the symbolic derivation, its growth with depth, and the ratio to a naive one.

The naive derivation differentiates the whole action before it sets the conjugates to zero, and
inverts S21 with SymPy's general inverse.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import sympy as sp

import fieldtheory as ft


def seconds(task: Callable[..., None], *arguments: int) -> float:
    """Wall time of a task in a new process, where SymPy's caches are empty."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_timed, task, *arguments).result()


def _timed(task: Callable[..., None], *arguments: int) -> float:
    start = time.perf_counter()
    task(*arguments)
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
        time_taken = seconds(derivation, depth, inputs)
        print(f"  depth {depth:2d}, {inputs} input(s): {time_taken:6.2f}")
    print("growth with depth, one input")
    for depth in (2, 5, 10, 20):
        print(f"  depth {depth:2d}: {seconds(derivation, depth, 1):6.2f}")
    print("naive derivation / this one")
    for depth in (1, 2, 3):
        ratio = seconds(naive, depth) / seconds(derivation, depth, 1)
        print(f"  depth {depth:2d}: {ratio:6.1f}")


if __name__ == "__main__":
    main()
