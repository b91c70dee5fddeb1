"""Where torch is not installed, there are no doctests of what needs it."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["fieldtheory/training"]
