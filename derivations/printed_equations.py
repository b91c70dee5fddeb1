"""What the derivations say of printed equations, held against their transcriptions."""

from __future__ import annotations

from fieldtheory.literature.verdicts import PAPERS


def require(number: str, holds: bool, region: str | None = None, paper: str = "F25") -> None:
    """Raise unless a transcription of this equation, in this region, has this verdict."""
    claims = [c for c in PAPERS[paper] if c.equation == number and region in (None, c.region)]
    verdicts = [c.verdict(20).holds for c in claims]
    assert holds in verdicts, f"the verdict on {paper} {number} has changed"
