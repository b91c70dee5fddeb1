"""The rule that evaluates an average in float64: the one place where it is chosen."""

from __future__ import annotations

from fieldtheory.averages import many, numeric
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage
from fieldtheory.averages.rules import Rule


def choose(node: AverageNode) -> Rule:
    """The rule for an average or cumulant without free symbols in its functions.

    Parameters
    ----------
    node : GaussianAverage or ConnectedCorrelator
        With known functions, free of δ-functions.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        If kinks do not lie at values of one variable.

    Examples
    --------
    >>> import sympy as sp
    >>> x, y = sp.symbols("x y", real=True)
    >>> choose(GaussianAverage(sp.tanh(x) * sp.tanh(y), (x, y), [[2, 1], [1, 2]])).name
    'Mehler series'
    """
    if isinstance(node, GaussianAverage) and len(node.variables) <= 2:
        return numeric.average(node)
    if isinstance(node, ConnectedCorrelator) and numeric.apart(node) is not None:
        return numeric.connected(node)
    return many.rule(node)
