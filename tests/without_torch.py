"""Hides torch: ``pytest -p tests.without_torch`` is a run where it is not installed."""

import sys
from importlib.machinery import PathFinder


class WithoutTorch(PathFinder):
    """Modules of the path, without torch."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname == "torch" else super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTorch
