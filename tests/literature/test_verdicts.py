"""All claims at once: which papers, in how many processes, and what is reported."""

import pytest

from fieldtheory.literature import f23, f25, pdlt, pf, sr, verdicts


def test_all_papers_or_some():
    assert verdicts.claims() == (
        *f25.CLAIMS,
        *f23.CLAIMS,
        *pdlt.CLAIMS,
        *sr.CLAIMS,
        *pf.CLAIMS,
    )
    assert verdicts.claims(["F23"]) == f23.CLAIMS
    assert verdicts.claims(()) == ()


def test_processes_find_the_same(monkeypatch):
    few = {"F25": f25.CLAIMS[7:10], "F23": f23.CLAIMS[6:8]}
    monkeypatch.setattr(verdicts, "PAPERS", few)
    described = []
    one = verdicts.verdicts(20, progress=described.append)
    two = verdicts.verdicts(20, jobs=2)
    assert [v.row for v in one] == [v.row for v in two]
    assert described == [f"{v.claim.paper} {v.claim.equation}" for v in one]
    assert {v.text for v in one} == {"holds", "does not hold"}
    assert [v.claim for v in one] == [*few["F25"], *few["F23"]]


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
