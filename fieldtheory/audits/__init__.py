"""`audit`: the weights and signals of a torch model against how it was meant to start."""

from fieldtheory.audits.auditing import Audit, audit
from fieldtheory.audits.intents import INTENTS
from fieldtheory.audits.places import Place

__all__ = ["INTENTS", "Audit", "Place", "audit"]
