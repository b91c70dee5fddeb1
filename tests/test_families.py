"""The table of docs/theory/families.md: every quantity of every family, a number or a reason."""

import numpy as np

from tests import families


def test_the_table_is_what_the_families_have():
    """Numbers to the digits that are printed, reasons to the letter."""
    text = families.PAGE.read_text(encoding="utf-8")
    printed = text[text.index(families.HEAD) :].splitlines()
    found = families.table()
    assert len(printed) == len(found)
    for old, new in zip(printed, found, strict=True):
        for was, now in zip(old.split("|"), new.split("|"), strict=True):
            try:
                np.testing.assert_allclose(float(now), float(was), rtol=2e-4, atol=1e-12)
            except ValueError:
                assert now.strip() == was.strip()
