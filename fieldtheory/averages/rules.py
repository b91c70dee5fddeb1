"""A way to evaluate an average, with its name and the reason it was chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

CLOSED_FORM = "closed form"
PRICE = "Price's theorem"


class Rule(NamedTuple):
    """Evaluation of one average.

    Parameters
    ----------
    name : str
        Of the rule.
    reason : str
        Why it applies.
    function : callable
        The average as a function of the entries of the covariance: the variances, then the
        covariances (0, 1), (0, 2), ..., (1, 2), ....
    """

    name: str
    reason: str
    function: Callable


def entry_indices(size: int) -> list[tuple[int, int]]:
    """The entries of a covariance in the order in which rules take them.

    Examples
    --------
    >>> entry_indices(3)
    [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    """
    upper = [(i, j) for i in range(size) for j in range(i + 1, size)]
    return [(i, i) for i in range(size)] + upper
