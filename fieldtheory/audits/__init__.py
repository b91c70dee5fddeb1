"""`audit`: the weights and signals of a torch model against how it was meant to start."""

from fieldtheory.audits.auditing import Audit, audit
from fieldtheory.audits.intents import INTENTS, Intent
from fieldtheory.audits.places import Place
from fieldtheory.audits.recognition import from_torch

__all__ = ["INTENTS", "Audit", "Intent", "Place", "audit", "from_torch"]
