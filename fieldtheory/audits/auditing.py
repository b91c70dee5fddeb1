"""`audit`: the start of a model against how it was meant."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.branches import Branch, prediction
from fieldtheory.audits.intents import as_intent, target_of
from fieldtheory.audits.signals import AuditedBlock, signals_of
from fieldtheory.audits.tensors import LAWS, AuditedTensor, probability, score, tensors_of
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.tables import table_html, table_text

# Probability with which a correct model is called wrong, all of its tests together.
FALSE_ALARM = 1e-3
# Deviations that are listed in the text, and roles for which a legend has room; curves.
_LISTED, _DRAWN = 12, ("behind", "linear", "share")


class Deviation(NamedTuple):
    """What is not as meant, with the factor, NaN if there is none, and z, ±∞ if not by chance."""

    name: str
    measured: str
    meant: str
    factor: float
    z: float


class DepthLaw(NamedTuple):
    """Law of σ_l: "constant", "1/√l", "varies" or "layer l is out of line"; and σ_1."""

    role: str
    layers: int
    law: str
    deviation: float


@dataclass(frozen=True, eq=False)
class Audit:
    """State of a model at its start, and its deviations from an intent; returned by `audit`.

    All ``tensors``; ``depth_laws`` of roles with three layers or more; the stream at ``blocks``, if
    it takes the inputs that are drawn; ``deviations`` beyond chance, the farthest first; the number
    of ``tests``, and with which ``probability`` one of a correct model is as significant.

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
        name, measured, meant, factor, z = self.deviations[0]
        times = "" if np.isnan(factor) else f", {factor:.3g} times that"
        number = f"{len(self.deviations)} deviation{'s' * (len(self.deviations) > 1)}"
        return f"{number} in {of}. First {name}: {measured} and not {meant}{times} (z = {z:.4g})."

    def rows(self) -> list[dict[str, Any]]:
        """A dict for every tensor; meant, factor and z are None where nothing deviates."""
        beyond = {row.name: row._asdict() for row in self.deviations}
        return [
            {"name": row.place.name, "kind": row.place.kind, "shape": "×".join(map(str, row.shape))}
            | {n: getattr(row, n) for n in ("law", "deviation", "error", "weight_variance")}
            | {n: beyond.get(row.place.name, {}).get(n) for n in ("meant", "factor", "z")}
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
            groups[roles.get(row.name, row.name), np.isinf(row.z)].append(row)
        # Of several the farthest.
        deviations = [
            {"tensor": role if len(rows) > 1 else rows[0].name, "number": len(rows)}
            | {n: value for n, value in rows[0]._asdict().items() if n != "name"}
            for (role, _), rows in [*groups.items()][:_LISTED]
        ]
        laws, blocks = ([row._asdict() for row in rows] for rows in (self.depth_laws, self.blocks))
        tables = {"deviations": deviations, "roles over the depth": laws, "signals": blocks}
        return [(title, _table(rows)) for title, rows in tables.items() if rows]

    def __str__(self) -> str:
        tables = (table_text(rows, title) for title, rows in self._tables())
        return "\n\n".join([self.statement, *tables])

    def __repr__(self) -> str:
        return f"Audit({self.statement})"

    def to_html(self) -> str:
        """The verdict and the tables, all tensors among them."""
        tables = [table_html(rows, title) for title, rows in self._tables()]
        return "".join([f"<p>{self.statement}</p>", *tables, table_html(self.rows(), "tensors")])

    _repr_html_ = to_html

    def plot(self) -> Any:
        """Weights over the layers, orange where they deviate, and the stream; needs matplotlib."""
        from fieldtheory.plotting.layers import draw_layers

        names, roles = {row.name for row in self.deviations}, defaultdict(list)
        for row in [row for row in self.tensors if row.place.layer] or self.tensors:
            roles[row.place.role].append(row)
        lines: list[Curve] = []
        beyond: list[Curve] = []
        for role, rows in roles.items():
            x, y, error = np.array([(r.place.layer or 0, r.deviation, r.error) for r in rows]).T
            far = np.array([row.place.name in names for row in rows])
            if far.any() or (rows[0].weight_variance and len(lines) < _LISTED):
                lines.append(Curve("", role, x, y, error))
                beyond += [Curve("", role, x[far], y[far], 0 * x[far])] * bool(far.any())
        x = np.arange(1, len(self.blocks) + 1)
        drawn = {n: np.array([getattr(row, n) for row in self.blocks]) for n in _DRAWN}
        stream, linear, share = ([Curve("", n, x, y)] for n, y in drawn.items())
        panels = {"mean square": [stream, linear], "": [share]} if self.blocks else {}
        weights = {"σ of the weights": [lines, beyond] if beyond else [lines]}
        return draw_layers(weights | panels, len(self.tensors))


@named_arguments
def audit(model: Any, inputs: Any = None, intent: Any = None) -> Audit:
    """Compare the weights and signals of a torch model with how it was meant to start.

    The deviation √⟨w²⟩ of n independent entries has 2n/(kurtosis − 1) degrees of freedom. What an
    intent says is tested, all tests together to a probability of 0.001 that a correct model is
    called wrong; other roles are compared over the layers. Without one also what no initialisation
    gives is named: NaN, infinities, memory that nobody wrote, repeated rows. Where the last branch
    of a block is, by its forward pass, that of a `BlockNetwork` or `ResidualNetwork`, the stream
    behind it is tested at the width of the model.

    Parameters
    ----------
    model : torch.nn.Module
        With its weights; nothing in it changes.
    inputs : tensor or tuple of tensors, optional
        Of a forward pass; if left out drawn as the first layer takes them: tokens, images, vectors.
    intent : str, mapping or callable, optional
        A name of `fieldtheory.audits.INTENTS`; a mapping from patterns such as
        ``"*.c_proj.weight"`` to a deviation, a law ("zeros", "normal", ...), both as a tuple, or a
        function of a `Place`; or such a function of all parameters, None for what is not tested.

    Returns
    -------
    Audit
        ``ok``, ``deviations``, ``print``, ``to_dataframe()``, ``plot()``, ``to_html()``.

    Raises
    ------
    TypeError, ValueError
        If ``model`` is no module, is quantised or has weights on the meta device; if an intent or a
        pattern of it concerns no parameter.

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
    tensors, tested, roles = tensors_of(model), [], defaultdict(list)
    rule = as_intent(intent, [row.place.name for row in tensors])
    targets = {row.place.name: target_of(rule, row.place) for row in tensors}
    if rule and not any(targets.values()):
        raise ValueError(f"intent must concern parameters of the model, got none for {intent!r}")
    for row in tensors:
        place, target = row.place, targets[row.place.name]
        if target or np.isnan(row.deviation):
            tested.append(_of_target(row, *(target or (None, None))))
        elif place.layer is not None:
            roles[place.role, place.kind, row.shape, place.fan_in].append(row)
    of_roles = [_over_depth(rows) for rows in roles.values() if len(rows) > 2]
    blocks = [_predicted(*each, targets) for each in signals_of(model, inputs)]
    tested += [each for _, each in of_roles]
    for name, *_, branch, square, value, spread, z, _ in blocks:
        if branch and square and value and z is not None:
            texts = f"⟨h²⟩ {square:.4g}", f"{value:.4g} ± {spread:.2g}"
            tested.append(Deviation(f"behind block {name}", *texts, square / value, z))
    tests = max(len(tested) + sum(law.layers - 2 for law, _ in of_roles), 1)
    beyond = [row for row in tested if probability(abs(row.z), tests) < FALSE_ALARM]
    with np.errstate(divide="ignore"):
        beyond.sort(key=lambda row: (-abs(row.z), -abs(np.nan_to_num(np.log(row.factor), nan=0.0))))
    least = probability(max((abs(row.z) for row in tested), default=0.0), tests)
    laws = tuple(law for law, _ in of_roles)
    return Audit(tuple(tensors), laws, tuple(blocks), tuple(beyond), tests, least)


def _table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without empty columns, of four digits, so that they fit 80 columns."""
    kept = [n for n in rows[0] if n != "before" and any(row[n] is not None for row in rows)]
    short = [{n: float(f"{v:.4g}") for n, v in r.items() if isinstance(v, float)} for r in rows]
    return [{n: few.get(n, row[n]) for n in kept} for row, few in zip(rows, short, strict=True)]


def _of_target(row: AuditedTensor, law: str | None, size: float | None) -> Deviation:
    """Distance of a tensor from what is meant, and of one that is not initialised."""
    if np.isnan(row.deviation):
        return Deviation(row.place.name, row.law, "numbers", np.nan, np.inf)
    is_constant = law == "constant" and row.law in ("zeros", "ones")
    is_few = row.law == "few" and law in (*LAWS, "orthogonal")
    # Chance gives no other law than those that have a score.
    z = 0.0 if law in (None, row.law) or is_constant or is_few else row.scores.get(law, np.inf)
    if size is not None:
        z = max(score(row.deviation, size, row.freedom, row.rounding), z, key=abs)
    # The law is said where it is another one.
    law = law if law != row.law else None
    meant = " ".join(filter(None, (law, "" if size is None else f"{size:.4g}")))
    measured = " ".join(filter(None, (law and row.law, f"{row.deviation:.4g}")))
    return Deviation(row.place.name, measured, meant, row.deviation / size if size else np.nan, z)


def _over_depth(rows: list[AuditedTensor]) -> tuple[DepthLaw, Deviation]:
    """The law of a role, with the layer that is the farthest from it."""
    sizes, layers = np.array([(row.deviation, row.place.layer or 1) for row in rows]).T
    # Weights in a mean, those of constants finite.
    freedom = np.minimum([row.freedom for row in rows], 1 / np.finfo(float).eps)
    law = DepthLaw(rows[0].place.role, len(rows), "varies", float(sizes[0]))
    for name, curve in (("constant", layers**0.0), ("1/√l", layers**-0.5)):
        ratios = sizes / curve
        at = int(np.abs(ratios - np.median(ratios)).argmax())
        fit = np.average(ratios**2, weights=freedom * (np.arange(len(rows)) != at)) ** 0.5 * curve
        trios = zip(sizes.tolist(), fit.tolist(), rows, strict=True)
        z = np.array([score(x, y, row.freedom, row.rounding) for x, y, row in trios])
        likely = [probability(abs(each), len(rows)) > FALSE_ALARM for each in z]
        if all(np.delete(likely, at)):
            law = law._replace(law=name if likely[at] else f"layer {layers[at]:.0f} is out of line")
            factor = float(sizes[at] / fit[at]) if fit[at] else np.inf
            texts = rows[at].place.name, "out of line", "as other layers"
            return law, Deviation(*texts, factor, float(z[at]))
    return law, Deviation(law.role, "", "", np.nan, 0.0)


def _predicted(row: AuditedBlock, branch: Branch | None, targets: Any) -> AuditedBlock:
    """A block with the theory of its branch, with weights as they are meant, and as they are."""
    if branch is None:
        return row
    sizes = {part: (targets[name] or (None, None))[1] for part, (name, _) in branch.weights.items()}
    fans = {part: fan_in for part, (_, fan_in) in branch.weights.items()}
    aims = {part: fans[part] * size**2 for part, size in sizes.items() if size is not None}
    before, behind = branch.squares
    value, spread = prediction(branch.network.replace(**aims), before)
    by_weights = float(solve(branch.network, before).kernels[1]) if aims else value
    z = score(behind**0.5, value**0.5, 2 * (value / spread) ** 2, 0.0) if spread else 0.0
    return AuditedBlock(*row[:7], branch.text, behind, value, spread, z, by_weights)
