"""What the derivations say of printed equations, held against their transcriptions."""

from __future__ import annotations

from fieldtheory.literature import f25


def require(number: str, holds: bool, region: str | None = None) -> None:
    """Raise unless a transcription of this equation of F25, in this region, has this verdict."""
    claims = [c for c in f25.CLAIMS if c.equation == number and region in (None, c.region)]
    verdicts = [c.verdict(20).holds for c in claims]
    assert holds in verdicts, f"the verdict on F25 {number} has changed"
