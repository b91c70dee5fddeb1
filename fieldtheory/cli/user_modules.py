"""Objects from modules of the user."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def imported(name: str, text: str) -> Any:
    """Object named by module:name or file.py:name; modules of the current folder come first."""
    module, colon, path = text.partition(":")
    if Path(module).is_file() and not module.endswith(".py"):
        raise ValueError(
            f"{name} must be module:name, got the file {module!r}, which is no module: write a "
            "function that loads what is in it, and name that one"
        )
    if not colon or not module or not path:
        raise ValueError(f"{name} must be module:name, such as blocks:two_layers, got {text!r}")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        value: Any = (
            SimpleNamespace(**runpy.run_path(module))
            if module.endswith(".py")
            else importlib.import_module(module)
        )
    except Exception as error:
        raise ValueError(
            f"{name} must name a module that can be imported, got {module!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(here)
    for part in path.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{name} must name something in {module}, which has no {path!r}")
        value = getattr(value, part)
    return value
