"""Finite networks that are trained, on PyTorch: modules drawn from the prior, Langevin sampling."""

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError(
        "fieldtheory.training needs torch: pip install 'fieldtheory-networks[torch]' or, without a "
        "GPU, pip install torch --index-url https://download.pytorch.org/whl/cpu"
    ) from None

from fieldtheory.training.langevin import Langevin
from fieldtheory.training.loop import DivergenceError, train
from fieldtheory.training.modules import torch_module
from fieldtheory.training.moved_inputs import measure_response

__all__ = ["DivergenceError", "Langevin", "measure_response", "torch_module", "train"]
