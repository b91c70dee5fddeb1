"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path


def memory_available() -> int | None:
    """Free memory in bytes, including what the system would free at once; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kibibytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(kibibytes)
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(what: str, needed: float, instead: str) -> None:
    """ValueError if ``what`` needs more bytes than are free, with what there is ``instead``."""
    available = memory_available()
    if available is not None and needed > available:
        raise ValueError(
            f"{what} needs about {needed / 1e9:.3g} GB of memory, {available / 1e9:.3g} GB are "
            f"free: {instead}"
        )
