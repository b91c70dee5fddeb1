"""`audit`: the start of a model against how it was meant."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldtheory.audits.intents import Rule, as_intent, measured_network, score, target_of
from fieldtheory.audits.signals import (
    AuditedBlock,
    checked_inputs,
    predicted,
    random_inputs,
    signals_of,
)
from fieldtheory.audits.tensors import LAWS, AuditedTensor, tensors_of
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.plotting.tables import table_html, table_text

# Probability with which a correct model is called wrong, all of its tests together.
FALSE_ALARM = 1e-3
# Entries that tell uniform, normal and truncated laws from each other without doubt.
_SURE = 20_000
# Deviations that are listed in the text; of more than these, roles.
_LISTED = 12
# Columns that only tensors have that deviate.
_BEYOND = "meant", "factor", "z"


@dataclass(frozen=True)
class Deviation:
    """A parameter that is not what it was meant to be.

    Parameters
    ----------
    name : str
    measured, meant : str
    factor : float
        Measured over meant deviation; NaN where that says nothing.
    z : float
        ±∞ where chance cannot do it.
    """

    name: str
    measured: str
    meant: str
    factor: float
    z: float


@dataclass(frozen=True)
class DepthLaw:
    """The deviations σ_l of one role over the layers.

    Parameters
    ----------
    role : str
    layers : int
    law : str
        "constant", "1/√l", "varies" or "layer l is out of line".
    deviation : float
        Of the first layer.
    name : str
        The tensor that is out of line, if one is.
    factor, z : float
        Of that one over the median of the others.
    """

    role: str
    layers: int
    law: str
    deviation: float
    name: str = ""
    factor: float = np.nan
    z: float = 0.0


@dataclass(frozen=True, eq=False)
class Audit:
    """State of a model at its start, and its deviations from an intent; returned by `audit`.

    Parameters
    ----------
    tensors : tuple of AuditedTensor
        All parameters and floating buffers.
    depth_laws : tuple of DepthLaw
        Roles with three layers or more.
    blocks : tuple of AuditedBlock
        The stream at every block; empty where the model has no list of like layers, or does not
        take the inputs that are drawn.
    deviations : tuple of Deviation
        What is beyond chance, the farthest first.
    tests : int
        How many tests there were.
    probability : float
        With which the most significant of them exceeds what it did, for a model that is as meant.

    Examples
    --------
    >>> import torch
    >>> result = audit(torch.nn.Linear(64, 64), intent={"weight": "orthogonal"})
    >>> result.ok, result.deviations[0].measured
    (False, 'uniform 0.07...')
    """

    tensors: tuple[AuditedTensor, ...]
    depth_laws: tuple[DepthLaw, ...]
    blocks: tuple[AuditedBlock, ...]
    deviations: tuple[Deviation, ...]
    tests: int
    probability: float

    @property
    def ok(self) -> bool:
        """Whether nothing deviates."""
        return not self.deviations

    @property
    def statement(self) -> str:
        """The verdict in a sentence."""
        count = len({row.place.role for row in self.tensors})
        of = f"{len(self.tensors)} tensors of {count} roles, {self.tests} tests"
        if self.ok:
            return f"Nothing deviates: {of}, p = {self.probability:.2g} for all together."
        first = self.deviations[0]
        factor = "" if np.isnan(first.factor) else f", {first.factor:.3g} times that"
        number = len(self.deviations)
        return (
            f"{number} deviation{'s' * (number > 1)} in {of}. First {first.name}: "
            f"{first.measured} and not {first.meant}{factor} (z = {first.z:.4g})."
        )

    def rows(self) -> list[dict[str, Any]]:
        """A dict for every tensor; meant, factor and z are None where nothing deviates."""
        beyond = {row.name: row for row in self.deviations}
        return [
            {
                "name": row.place.name,
                "kind": row.place.kind,
                "shape": "×".join(map(str, row.shape)),
                "law": row.law,
                "deviation": row.deviation,
                "error": row.error * row.deviation,
                "weight_variance": row.weight_variance,
                **{n: getattr(beyond.get(row.place.name), n, None) for n in _BEYOND},
            }
            for row in self.tensors
        ]

    def to_dataframe(self) -> Any:
        """The tensors as a DataFrame; needs pandas."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self.rows())

    def _tables(self) -> list[tuple[str, list[dict[str, Any]]]]:
        roles = {row.place.name: row.place.role for row in self.tensors}
        groups = defaultdict(list)
        for row in self.deviations:
            many = len(self.deviations) > _LISTED
            key = roles.get(row.name, row.name) if many else row.name, np.isinf(row.z)
            groups[key].append(row)
        # Of several the farthest.
        deviations = [
            {"tensor": role if len(rows) > 1 else rows[0].name, "number": len(rows)}
            | {n: _rounded(value) for n, value in vars(rows[0]).items() if n != "name"}
            for (role, _), rows in [*groups.items()][:_LISTED]
        ]
        columns = "role", "layers", "law", "deviation"
        laws = [{n: _rounded(getattr(row, n)) for n in columns} for row in self.depth_laws]
        # What is before a block is behind the last one.
        names = "name", "behind", "share", "linear", "correlation", "gradient"
        blocks = [{n: _rounded(getattr(row, n)) for n in names} for row in self.blocks]
        predictions = [
            {
                "block": row.name,
                "⟨h²⟩": _rounded(row.first[1]),
                "predicted": _rounded(row.predicted),
                "±": _rounded(row.predicted_error),
                "z": _rounded(row.z),
                "by weights": _rounded(row.explained),
            }
            for row in self.blocks
            if row.predicted is not None
        ]
        tables = [("deviations", deviations), ("roles over the depth", laws), ("signals", blocks)]
        tables.append(("first input behind every block, theory of the intent", predictions))
        return [(title, rows) for title, rows in tables if rows]

    def __str__(self) -> str:
        return "\n\n".join(
            [self.statement, *(table_text(rows, title) for title, rows in self._tables())]
        )

    def __repr__(self) -> str:
        return f"Audit({self.statement})"

    def to_html(self) -> str:
        """The verdict and the tables, all tensors among them."""
        tables = [*self._tables(), ("tensors", self.rows())]
        parts = [table_html(rows, title) for title, rows in tables]
        return f"<p>{self.statement}</p>" + "".join(parts)

    _repr_html_ = to_html

    def plot(self) -> Any:
        """Deviations of the roles over the layers, and the stream; needs matplotlib."""
        from fieldtheory.plotting.audits import draw_audit

        return draw_audit(self)


@named_arguments
def audit(model: Any, inputs: Any = None, intent: Any = None) -> Audit:
    """Compare the weights and signals of a torch model with how it was meant to start.

    Every tensor has a law and a deviation √⟨w²⟩ with an error from its kurtosis: its square has a
    χ² law of 2n/(kurtosis − 1) degrees of freedom for n independent entries. What an intent says of
    it is tested, all tests together to a probability of 0.001 that a correct model is called wrong.
    Without an intent each role is compared with itself over the layers, and what no initialisation
    gives is named: NaN, infinities, memory that nobody wrote, repeated rows.

    Parameters
    ----------
    model : torch.nn.Module
        With its weights; nothing in it changes.
    inputs : tensor, tuple of tensors or array_like, optional
        Arguments of a forward pass; drawn at random if left out, where the first layer says what
        they are (embeddings, images, vectors).
    intent : str, mapping, callable or BlockNetwork, optional
        A name of `fieldtheory.audits.INTENTS`; a mapping from patterns such as
        ``"*.c_proj.weight"`` to a deviation, a law ("zeros", "normal", ...), both as a tuple, or a
        function of a `Place`; or such a function of all parameters, None for what is not tested.
        Or a `BlockNetwork`: its matrices, and the mean square of the stream behind every block with
        ± over networks of its width, for a model that is nothing but such blocks.

    Returns
    -------
    Audit
        ``ok``, ``deviations``, ``print``, ``to_dataframe()``, ``plot()``, ``to_html()``.

    Raises
    ------
    TypeError, ValueError
        If ``model`` is no module, is quantised or has weights on the meta device; if an intent is
        not known or concerns no parameter.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
    >>> print(audit(model, intent="torch").statement)
    Nothing deviates: 8 tensors of 2 roles, 8 tests, p = ...
    >>> torch.nn.init.zeros_(model[2].weight).shape
    torch.Size([64, 64])
    >>> print(audit(model).statement)
    1 deviation in 8 tensors of 2 roles, ... tests. First 2.weight: ...
    """
    rule, tensors = as_intent(intent), tensors_of(model)
    deviations, scores = _of_intent(rule, tensors) if rule else ([], [])
    meant = {row.place.name for row in tensors if rule and target_of(rule, row.place)}
    if rule is not None and not meant:
        raise ValueError(f"intent must concern parameters of the model, got none for {intent!r}")
    for row in tensors:
        if row.law.startswith("not initialised"):
            deviations.append(Deviation(row.place.name, row.law, "numbers", np.nan, np.inf))
    laws = _depth_laws([row for row in tensors if row.place.name not in meant])
    scores += [law.z for law in laws]
    deviations += [
        Deviation(law.name, "out of line", "as the other layers", law.factor, law.z) for law in laws
    ]
    blocks = _signals(model, checked_inputs(model, inputs))
    if isinstance(intent, GramNetwork) and blocks:
        blocks = predicted(blocks, intent, measured_network(intent, tensors))
        scores += [row.z for row in blocks]
        deviations += [_of_signal(row) for row in blocks]
    tests = max(len(scores) + sum(law.layers - 1 for law in laws), 1)
    least = _probability(float(np.abs([0.0, *scores]).max()), tests)
    beyond = [row for row in deviations if _probability(abs(row.z), tests) < FALSE_ALARM]
    beyond.sort(key=lambda row: (-abs(row.z), -_ratio(row.factor)))
    return Audit(tuple(tensors), tuple(laws), tuple(blocks), tuple(beyond), tests, least)


def _ratio(factor: float) -> float:
    """Size of the logarithm of a factor, 0 where it says nothing."""
    if np.isnan(factor):
        return 0.0
    return float(abs(np.log(factor))) if factor else np.inf


def _signals(model: Any, inputs: Any) -> list[AuditedBlock]:
    """Signals of the blocks; none where inputs are drawn and the model takes others."""
    if inputs is not None:
        return signals_of(model, inputs)
    inputs = random_inputs(model)
    if inputs is None:
        return []
    try:
        return signals_of(model, inputs)
    except Exception:
        return []


def _probability(z: float, tests: int) -> float:
    """Probability that the largest of so many |z| exceeds one."""
    from scipy.special import ndtr

    return float(-np.expm1(tests * np.log1p(-min(2 * ndtr(-z), 1 - 1e-16))))


def _of_intent(rule: Rule, tensors: list[AuditedTensor]) -> tuple[list[Deviation], list[float]]:
    deviations, scores = [], []
    for row in tensors:
        target = target_of(rule, row.place)
        if target is None or row.law.startswith("not initialised"):
            continue
        z = _of_law(row, target.law)
        if target.deviation is not None:
            of_size = score(row.deviation, target.deviation, row.freedom, row.rounding)
            z = of_size if abs(of_size) >= z else z
        scores.append(z)
        factor = row.deviation / target.deviation if target.deviation else np.nan
        # The law is said where it is another one.
        law = target.law if target.law != row.law else None
        meant = " ".join(filter(None, (law, _number(target.deviation))))
        measured = " ".join(filter(None, (law and row.law, _number(row.deviation))))
        deviations.append(Deviation(row.place.name, measured, meant, factor, z))
    return deviations, scores


def _rounded(value: Any) -> Any:
    """Four digits of a number, so that tables fit 80 columns."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _of_signal(row: AuditedBlock) -> Deviation:
    meant = f"{row.predicted:.4g} ± {row.predicted_error:.2g}"
    factor = row.first[1] / row.predicted if row.predicted else np.nan
    return Deviation(f"behind block {row.name}", f"⟨h²⟩ {row.first[1]:.4g}", meant, factor, row.z)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _of_law(row: AuditedTensor, law: str | None) -> float:
    """0 where a tensor has the law, ∞ where chance cannot give it another."""
    if law is None or row.law == law or row.law == "few":
        return 0.0
    if law == "constant" and row.law in ("zeros", "ones"):
        return 0.0
    if law == "truncated normal" and row.law == "normal":
        # A law that is cut far out.
        return 0.0
    return np.inf if {law, row.law} - {"other", *LAWS} or row.entries >= _SURE else 0.0


def _depth_laws(tensors: list[AuditedTensor]) -> list[DepthLaw]:
    """σ over the layers of every role that has three and more of one kind and shape."""
    by_role = defaultdict(list)
    for row in tensors:
        place = row.place
        if place.layer is not None and not np.isnan(row.deviation):
            by_role[place.role, place.kind, row.shape, place.fan_in].append(row)
    return [_depth_law(key[0], rows) for key, rows in by_role.items() if len(rows) > 2]


def _depth_law(role: str, rows: list[AuditedTensor]) -> DepthLaw:
    sizes = np.array([row.deviation for row in rows])
    first, middle = DepthLaw(role, len(rows), "constant", float(sizes[0])), float(np.median(sizes))
    fixed = np.isinf([row.freedom for row in rows])
    if fixed.any():
        # Constants are alike, or one of them is not, or one is among random ones.
        unlike = np.flatnonzero(
            fixed if fixed.sum() == 1 else ~np.isclose(sizes, middle, rtol=1e-6)
        )
        if len(unlike) != 1:
            return first if not len(unlike) else replace(first, law="varies")
        at = int(unlike[0])
        return _outlier(first, rows[at], sizes[at] / middle if middle else np.inf, np.inf)
    layers = np.array([row.place.layer for row in rows], dtype=float)
    ratios_of = {"constant": sizes, "1/√l": sizes * layers**0.5}
    for law, ratios in ratios_of.items():
        if _are_alike(_distances(ratios, rows)[1]):
            return replace(first, law=law)
    for ratios in ratios_of.values():
        at = int(np.abs(np.log(ratios / np.median(ratios))).argmax())
        mean, z = _distances(ratios, rows, at)
        if _are_alike(np.delete(z, at)):
            return _outlier(first, rows[at], ratios[at] / mean, z[at])
    return replace(first, law="varies")


def _distances(
    ratios: np.ndarray, rows: list[AuditedTensor], without: int | None = None
) -> tuple[float, np.ndarray]:
    """The mean of sizes, all but one of them, and z of each."""
    weights = np.array([row.freedom for row in rows])
    if without is not None:
        weights[without] = 0.0
    mean = float(np.average(ratios**2, weights=weights) ** 0.5)
    pairs = zip(ratios.tolist(), rows, strict=True)
    return mean, np.array([score(x, mean, row.freedom, row.rounding) for x, row in pairs])


def _are_alike(z: np.ndarray) -> bool:
    return _probability(float(np.abs(z).max()), len(z)) > FALSE_ALARM


def _outlier(law: DepthLaw, row: AuditedTensor, factor: float, z: float) -> DepthLaw:
    text = f"layer {row.place.layer} is out of line"
    return replace(law, law=text, name=row.place.name, factor=float(factor), z=float(z))
