"""Expressions in averages, expanded so that equal ones become the same."""

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.nodes.base import AverageNode


def expand_averages(expr):
    """Expand products around averages and sums inside them, not what stands further inside."""
    nodes = expr.atoms(AverageNode)
    linear = {a: a._eval_expand_basic() for a in nodes if isinstance(a, GaussianAverage)}
    expr = expr.xreplace({a: new for a, new in linear.items() if new != a})
    masks = {a: sp.Dummy() for a in expr.atoms(AverageNode)}
    expanded = sp.expand(expr.xreplace(masks))
    return expanded.xreplace({mask: a for a, mask in masks.items()})
