"""Long tables of cases: what is quick, and what runs with the slow tests only."""

from itertools import product

import pytest


def slow(*case):
    """A case that runs with the slow tests only."""
    return pytest.param(*case, marks=pytest.mark.slow)


def some(cases, quick):
    """All cases; those not in ``quick`` are slow."""
    return [case if case in quick else slow(case) for case in cases]


def crossed(*axes):
    """All combinations of the values of the axes; quick are a few in which every value comes."""
    axes = [list(axis) for axis in axes]
    steps = range(max(map(len, axes)))
    quick = {tuple(step % len(axis) for axis in axes) for step in steps}
    cases = []
    for indices in product(*(range(len(axis)) for axis in axes)):
        case = [axis[i] for axis, i in zip(axes, indices, strict=True)]
        cases.append(pytest.param(*case) if indices in quick else slow(*case))
    return cases
