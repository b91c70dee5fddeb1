"""Files that commands read."""

import numpy as np
import pytest


@pytest.fixture
def samples(tmp_path):
    """Three samples of five numbers, and the options that name their file."""
    X = np.random.default_rng(0).normal(size=(3, 5))
    np.savetxt(tmp_path / "samples.csv", X, delimiter=",")
    return X, ("--data", tmp_path / "samples.csv")
