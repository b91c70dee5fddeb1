"""Every parameter of a model with its law and its size; scores of laws and sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from fieldtheory import validation
from fieldtheory.audits.places import Place, places

# Kurtosis of independent entries and n times its variance.
_UNIFORM, _NORMAL = (1.8, 1.32), (3.0, 24.0)
# Kurtosis of a normal law cut at one deviation; entries of which the kurtosis has that variance.
_CUT, _FEW = 1.94, 50
LAWS = ("uniform", "normal", "truncated normal")
# Standard errors beyond which a law is another one: of 10⁵ tensors, chance puts one there.
_FAR = 4.5
# Products of orthogonal rows of length one, in float32.
_ORTHOGONAL = 1e-3
# Entries of a row that chance does not repeat.
_ROW = 16
_VECTORS = "bias", "vector", "norm", "norm offset", "norm bias", "embedding", "buffer"


class AuditedTensor(NamedTuple):
    """The law of a parameter or buffer, √⟨w²⟩ with its error, and σ²_w = fan-in × variance.

    Laws: "zeros", "ones", "constant", "normal", "truncated normal", "uniform", "orthogonal",
    "other", "few" where entries do not say, "repeated: ..." of rows, "not initialised: ...". The
    square has ``freedom`` degrees; ``kurtosis`` is that of the entries, ``scores`` are z of laws,
    ``rounding`` is the relative spacing of the numbers.
    """

    place: Place
    shape: tuple[int, ...]
    law: str
    deviation: float
    error: float
    weight_variance: float | None
    freedom: float
    rounding: float
    scores: dict[str, float]
    kurtosis: float


def _audited(place: Place, tensor: Any, numbers: Any) -> AuditedTensor:
    """The law and the size of a tensor, in float64; an empty one counts as zero."""
    x = np.atleast_1d(tensor.detach().cpu().double().numpy()) if tensor.numel() else np.zeros(1)
    # Rows of padding are zero.
    x = x[x.any(axis=-1)] if place.kind == "embedding" and x.any() else x
    scores, freedom, kurtosis, squares = dict[str, float](), np.inf, 1.0, x.ravel() ** 2
    law = "other"
    square = float(squares.mean())
    fault = _fault(x, place.kind)
    if fault.startswith("not"):
        square, freedom = np.nan, np.nan
    elif (x == x.flat[0]).all():
        law = {0.0: "zeros", 1.0: "ones"}.get(x.flat[0], "constant")
    elif not np.isinf(square):
        kurtosis = max(float(squares @ squares) / x.size / square**2, 1 + 2 / x.size)
        scores = law_scores(x, kurtosis, max(_ORTHOGONAL, numbers.eps))
        law, freedom = _nearest(scores), freedom_of(scores, kurtosis, x.size)
    law = fault or law
    size, error = square**0.5, (square / 2 / freedom) ** 0.5
    spacing = numbers.eps * max(1.0, numbers.smallest_normal / size if size else 0.0)
    variance = None if place.kind in _VECTORS else place.fan_in * square
    shape = tuple(tensor.shape)
    numbers_of = freedom, spacing, scores, kurtosis
    return AuditedTensor(place, shape, law, size, error, variance, *numbers_of)


def _nearest(scores: dict[str, float]) -> str:
    laws = [law for law, z in scores.items() if abs(z) < _FAR]
    return "few" if not scores or {"uniform", "normal"} <= {*laws} else [*laws, "other"][0]


def freedom_of(scores: dict[str, float], kurtosis: float, entries: float) -> float:
    """Degrees of freedom of a mean square: few entries measure no kurtosis, and laws have one."""
    kurtoses = {"few": max(kurtosis, _NORMAL[0]), "uniform": _UNIFORM[0], "normal": _NORMAL[0]}
    return 2 * entries / (kurtoses.get(_nearest(scores), kurtosis) - 1)


def _fault(x: np.ndarray, kind: str) -> str:
    """What no initialisation gives; buffers may have infinities and equal rows."""
    is_buffer = kind == "buffer"
    wrong = np.isnan(x) if is_buffer else ~np.isfinite(x)
    if wrong.any():
        return f"not initialised: {100 * wrong.mean():.3g} % of the entries are NaN or infinite"
    sizes, rows = np.abs(x), x.reshape(len(x), -1)[:, :_ROW]
    least, most = sizes.min(initial=np.inf, where=sizes > 0), sizes.max()
    if not is_buffer and least < np.finfo(np.float32).tiny * max(1.0, most):
        return f"not initialised: entries from {least:.2g} to {most:.2g}"
    # Slices of stacks are compared one by one, as other tensors are.
    if is_buffer or rows.shape[1] < _ROW or (kind == "matrix" and x.ndim > 2):
        return ""
    # Identities have zeros.
    rows = rows[(np.ptp(rows, axis=1) > 0) & rows.all(axis=1)]
    repeated = len(rows) - len(np.unique(rows, axis=0))
    return f"repeated: {repeated} rows of {len(x)}" if 0 < repeated < len(rows) - 1 else ""


def tensors_of(model: Any) -> list[AuditedTensor]:
    """All of a model, or an error that says which of its weights are not there or no numbers."""
    import torch

    def refuse(is_so: Any, wanted: str, got: str) -> None:
        if is_so:
            raise ValueError(f"model must {wanted}, got {got}")

    if not validation.is_torch_module(model) or isinstance(model, type):
        raise TypeError(f"model must be a torch.nn.Module, got {validation.excerpt(model)}")
    for name, module in model.named_modules():
        of = f"{name or 'model'}, a {type(module).__name__}"
        refuse(isinstance(module, torch.jit.ScriptModule), "be the module before torch.jit", of)
        refuse(".quantized." in f"{type(module).__module__}.", "not be quantised", of)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        is_lazy = torch.nn.parameter.is_lazy(tensor)
        refuse(is_lazy, "have its shapes", f"{name} before a first forward pass")
        refuse(tensor.is_meta, "have its weights", f"{name} on the meta device")
        is_whole = not (tensor.is_floating_point() or tensor.is_complex())
        is_quantised = tensor.is_quantized or (isinstance(tensor, torch.nn.Parameter) and is_whole)
        refuse(is_quantised, "not be quantised", f"{name} of {tensor.dtype}")
    rows = [_audited(*each, torch.finfo(each[1].dtype)) for each in places(model)]
    refuse(not rows, "have parameters", "none")
    return rows


def score(deviation: float, target: float, freedom: float, rounding: float) -> float:
    """z of a measured deviation, by Wilson and Hilferty's root of χ² of so many degrees."""
    if target == 0 or np.isinf(freedom):
        is_equal = np.isclose(deviation, target, rtol=max(rounding, 1e-6), atol=0)
        return 0.0 if is_equal else np.inf
    spread = 2 / (9 * freedom)
    return float(((deviation / target) ** (2 / 3) - (1 - spread)) / spread**0.5)


def probability(z: float, tests: int) -> float:
    """Probability that the largest of so many |z| exceeds one."""
    return float(-np.expm1(tests * np.log1p(-min(2 * ndtr(-z), 1 - 1e-16))))


def law_scores(x: np.ndarray, kurtosis: float, tolerance: float) -> dict[str, float]:
    """z of the laws that entries may have; of orthogonal rows or columns of one."""
    if x.ndim == 2 and min(x.shape) > 1:
        some = (x if x.shape[0] <= x.shape[1] else x.T)[:64]
        gram = some @ some.T / (some**2).sum(axis=1).mean()
        if np.abs(gram - np.eye(len(gram))).max() < tolerance:
            return {"orthogonal": 0.0}
    return scores_of(kurtosis, x.size)


def scores_of(kurtosis: float, entries: float) -> dict[str, float]:
    """z of so many independent entries under the laws that they may have, by their kurtosis."""
    cut = float(np.clip(kurtosis, _CUT, _NORMAL[0])), _NORMAL[1]
    return {
        law: (1 - (expected / kurtosis) ** 2) * expected / 2 / (variance / entries) ** 0.5
        for law, (expected, variance) in zip(LAWS, (_UNIFORM, _NORMAL, cut), strict=True)
        if entries >= _FEW
    }
