"""All claims at once: which papers, in how many processes, and what is reported."""

import os
from dataclasses import replace

import pytest

from fieldtheory.literature import f23, verdicts
from fieldtheory.numerics import chunks


def test_all_papers_or_some():
    assert list(verdicts.PAPERS) == ["F25", "F23", "PDLT-B", "SR", "PF", "DCL", "SPT"]
    assert verdicts.claims() == sum(verdicts.PAPERS.values(), start=())
    assert verdicts.claims(["F23"]) == f23.CLAIMS
    assert verdicts.claims(()) == ()


@pytest.mark.slow
def test_processes_find_the_same():
    described = []
    one = list(verdicts.verdicts(20, ["F23"], described.append))
    two = list(verdicts.verdicts(20, ["F23"], jobs=2))
    assert [v.row for v in one] == [v.row for v in two]
    assert described == [f"{v.claim.paper} {v.claim.equation}" for v in one]
    assert {v.word for v in one} >= {"proved", "does not hold"}
    assert verdicts.changed(one) == []
    assert [v.claim for v in one] == list(f23.CLAIMS)


def test_a_verdict_is_there_before_the_next_claim_is_checked(monkeypatch):
    first, second = f23.CLAIMS[:2]
    monkeypatch.setattr(verdicts, "PAPERS", {"F23": (first, replace(second, derived=None))})
    judged = verdicts.verdicts(20, ["F23"])
    assert next(judged).claim is first
    with pytest.raises(TypeError, match="not callable"):
        next(judged)


def test_claims_on_one_equation():
    found = verdicts.claims(["F25"], "68")
    assert {claim.equation for claim in found} == {"(68)", "text after (68)"}
    assert verdicts.claims(["PDLT-B"], "(B.26)")[0].equation == "(B.26)"
    with pytest.raises(ValueError, match="^equation must be a number .* F23 names, got '999'$"):
        verdicts.verdicts(20, ["F23"], equation="999")


def test_a_changed_verdict_is_noticed():
    verdict = f23.CLAIMS[0].verdict(20)
    assert verdicts.changed([verdict]) == []
    (line,) = verdicts.changed([replace(verdict, word="misprint")])
    assert line.startswith("F23 (") and ": misprint, expected: " in line


def test_processes_are_not_forks(monkeypatch):
    """One that is forked beside threads may wait forever for what a thread held."""
    monkeypatch.delattr(os, "fork")
    first, second = chunks.in_order([(pow, 2, 3), (os.getpid,)], 2, "this")
    assert first == 8 and second != os.getpid()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"papers": ["F24"]}, ValueError),
        ({"papers": "F25"}, TypeError),
        ({"digits": 5}, ValueError),
        ({"jobs": 0}, ValueError),
    ],
)
def test_bad_input(arguments, error):
    (name,) = arguments
    with pytest.raises(error, match=f"^{name} must [^\n]*$"):
        verdicts.verdicts(**arguments)
