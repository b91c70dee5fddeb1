"""All claims of the papers, and their verdicts in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fieldtheory import validation
from fieldtheory.literature import (
    f23,
    f25_entropy,
    f25_scaling,
    f25_theory,
    pdlt_kernels,
    pdlt_vertex,
    pf_experiments,
    pf_limits,
    pf_properties,
    sr_inference,
    sr_kernels,
    sr_limits,
    sr_tangent,
    sr_universality,
)
from fieldtheory.literature.claim import Claim, Evidence, Verdict
from fieldtheory.numerics import chunks

# In their order: of F25 and F23, K. Fischer, D. Dahmen, M. Helias, Field theory for optimal signal
# propagation in ResNets (2025, arXiv:2305.07715) and its earlier version; of PDLT-B, D. A. Roberts,
# S. Yaida, B. Hanin, The Principles of Deep Learning Theory (2022, arXiv:2106.10165), appendix B,
# "Residual learning"; of SR, S. Hayou, E. Clerico, B. He, G. Deligiannidis, A. Doucet, J. Rousseau,
# Stable ResNet (AISTATS 2021, arXiv:2010.12859); of PF, S. Peluchetti, S. Favaro, Infinitely deep
# neural networks as diffusion processes (AISTATS 2020, arXiv:1905.11065).
_PARTS = (
    *(f25_theory, f25_scaling, f25_entropy, f23, pdlt_kernels, pdlt_vertex),
    *(sr_kernels, sr_tangent, sr_limits, sr_universality, sr_inference),
    *(pf_limits, pf_properties, pf_experiments),
)
PAPERS: dict[str, tuple[Claim, ...]] = {
    paper: tuple(claim for part in _PARTS if part.PAPER == paper for claim in part.CLAIMS)
    for paper in dict.fromkeys(part.PAPER for part in _PARTS)
}


def claims(papers: Sequence[str] | None = None) -> tuple[Claim, ...]:
    """The claims of some papers, or of all.

    Parameters
    ----------
    papers : sequence of str, optional
        Of "F25", "F23", "PDLT-B", "SR" and "PF".

    Returns
    -------
    tuple of Claim

    Raises
    ------
    ValueError
        For an unknown paper.

    Examples
    --------
    >>> {claim.paper for claim in claims(["F23"])}
    {'F23'}
    """
    return tuple(PAPERS[paper][i] for paper, i in _places(papers))


def verdicts(
    digits: int = 50,
    papers: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
    jobs: int = 1,
) -> list[Verdict]:
    """Check every claim of some papers, or of all.

    Parameters
    ----------
    digits : int
        Digits of comparisons in mpmath, at least 20.
    papers : sequence of str, optional
        As for `claims`.
    progress : callable, optional
        Called with a description when a claim is checked.
    jobs : int
        Number of joblib's processes.

    Returns
    -------
    list of Verdict

    Raises
    ------
    ValueError
        For an unknown paper, or ``digits`` < 20.
    ImportError
        For several processes without joblib.

    Examples
    --------
    >>> found = verdicts(20, ["F23"])
    >>> [v.text for v in found if v.claim.equation == "(8)"]
    ['does not hold', 'holds']
    """
    digits = validation.integer("digits", digits, 20)
    validation.integer("jobs", jobs, 1)
    places = _places(papers)
    # A claim holds functions that stay in the process; its evidence is text.
    tasks = ((_evidence, *place, digits) for place in places)
    found = chunks.in_order(tasks, jobs, "verdicts in several processes")
    judged = []
    for (paper, index), evidence in zip(places, found, strict=True):
        judged.append(Verdict(PAPERS[paper][index], evidence))
        if progress is not None:
            progress(f"{paper} {PAPERS[paper][index].equation}")
    return judged


def _places(papers: Sequence[str] | None) -> list[tuple[str, int]]:
    if isinstance(papers, str):
        raise TypeError(f"papers must be a sequence of names, got {papers!r}")
    chosen = tuple(PAPERS) if papers is None else papers
    for paper in chosen:
        validation.choice("papers", paper, tuple(PAPERS))
    return [(paper, i) for paper in chosen for i in range(len(PAPERS[paper]))]


def _evidence(paper: str, index: int, digits: int) -> Evidence:
    return PAPERS[paper][index].verdict(digits).found
