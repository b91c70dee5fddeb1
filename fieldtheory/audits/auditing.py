"""`audit`: the start of a model against how it was meant."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.branches import AuditedBlock
from fieldtheory.audits.intents import targets_of
from fieldtheory.audits.tensors import LAWS, AuditedTensor, probability, score, tensors_of
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.layers import draw_layers
from fieldtheory.plotting.tables import table_html, table_text

# Probability with which a correct model is called wrong, all of its tests together.
FALSE_ALARM = 1e-3
# Deviations that are listed in the text, and roles for which a legend has room.
_LISTED = 12
# Laws besides its own that a tensor of a law does not contradict.
_ALSO = {"zeros": ("constant",), "ones": ("constant",), "few": (*LAWS, "orthogonal")}


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

    All ``tensors``; ``depth_laws`` of roles with three layers or more; the stream at ``blocks``, of
    which ``without_signals`` says why there are none; ``deviations`` beyond chance, the farthest
    first; the number of ``tests``, and with which ``probability`` one of a correct model is as
    significant.

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
    without_signals: str = ""

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

    def _tables(self) -> list[tuple[list[dict[str, Any]], str]]:
        """Tables with their titles; of several deviations of a role the farthest."""
        roles, groups = {row.place.name: row.place.role for row in self.tensors}, defaultdict(list)
        for row in self.deviations:
            groups[roles.get(row.name, row.name)].append(row)
        farthest = [
            rows[0]._replace(name=f"{len(rows)} × {role}") if len(rows) > 1 else rows[0]
            for role, rows in groups.items()
        ]
        tables = farthest[:_LISTED], self.depth_laws, self.blocks
        titles = "deviations", "roles over the depth", "signals"
        return [(_table(rows), title) for rows, title in zip(tables, titles, strict=True) if rows]

    def __str__(self) -> str:
        texts = [self.statement, *(table_text(*each) for each in self._tables())]
        return "\n\n".join([*texts, *self._reason])

    @property
    def _reason(self) -> list[str]:
        return [f"No signals: {self.without_signals}."] if self.without_signals else []

    def __repr__(self) -> str:
        return f"Audit({self.statement})"

    def to_html(self) -> str:
        """The verdict and the tables, all tensors among them."""
        tables = [*self._tables(), (self.rows(), "tensors")]
        texts = [self.statement, *self._reason]
        return "".join(
            [
                *(f"<p>{html.escape(text)}</p>" for text in texts),
                *(table_html(*each) for each in tables),
            ]
        )

    _repr_html_ = to_html

    def plot(self) -> Any:
        """Matrices over the layers, orange what deviates, and the stream; needs matplotlib."""
        far = {row.name for row in self.deviations}
        drawn: tuple[dict[str, list[Any]], ...] = defaultdict(list), defaultdict(list)
        for row in self.tensors:
            is_far, point = row.place.name in far, (row.place.layer or 0, row.deviation, row.error)
            if is_far or row.weight_variance:
                drawn[is_far][row.place.role].append(point)
        lines, beyond = ([Curve("", n, *np.array(p).T) for n, p in each.items()] for each in drawn)
        weights = {"σ of the weights": [lines[:_LISTED], beyond[:_LISTED]]}
        x, names = np.arange(1, len(self.blocks) + 1), ("behind", "linear", "share")
        signals = {n: np.array([getattr(row, n) for row in self.blocks]) for n in names}
        behind, linear, share = ([Curve("", n, x, y)] for n, y in signals.items())
        stream = {"mean square": [behind, linear], "": [share]} if self.blocks else {}
        return draw_layers(weights | stream, len(self.tensors))


@named_arguments
def audit(model: Any, inputs: Any = None, intent: Any = None) -> Audit:
    """Compare the weights and signals of a torch model with how it was meant to start.

    The deviation √⟨w²⟩ of n independent entries has 2n/(kurtosis − 1) degrees of freedom. What an
    intent says is tested, all tests together to a probability of 0.001 that a correct model is
    called wrong; other roles are compared over the layers. Without one also what no initialisation
    gives is named: NaN, infinities, memory that nobody wrote, repeated rows. Where the last branch
    of a block is, by its forward pass, that of a `BlockNetwork` or `ResidualNetwork`, the stream
    behind it is tested at the width of the model; others have the numbers of `measure_block`.

    Parameters
    ----------
    model : torch.nn.Module
        With its weights; nothing in it changes.
    inputs : tensor, tuple of tensors or mapping, optional
        Of a forward pass, a mapping as keyword arguments; if left out drawn as the first layer
        takes them: tokens, images, vectors. ``without_signals`` says if there are none, and why.
    intent : str, mapping or callable, optional
        A name of `fieldtheory.audits.INTENTS`; a mapping from patterns such as
        ``"*.c_proj.weight"`` to a deviation, a law ("zeros", "normal", ...), both as a tuple, such
        a name, a function of a `Place`, or None for what is not tested, of which the first that
        fits counts; or such a function of all parameters, None for what is free.

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
    >>> _ = torch.nn.init.zeros_(model[2].weight)
    >>> print(audit(model).statement)
    1 deviation in 8 tensors of 2 roles, ... tests. First 2.weight: ...
    """
    from fieldtheory.audits.signals import signals_of

    tensors, tested, roles = tensors_of(model), list[Deviation](), defaultdict(list)
    targets = targets_of(intent, [row.place for row in tensors])
    for row in tensors:
        place, target = row.place, targets.get(row.place.name, (None, None))
        if (place.name in targets and target) or np.isnan(row.deviation):
            tested.append(_of_target(row, *(target or (None, None))))
        elif place.layer is not None and target:
            roles[place.role, place.kind, row.shape, place.fan_in].append(row)
    blocks, without_signals = signals_of(model, inputs, targets)
    for block in blocks:
        if block.measured and block.predicted and block.z is not None:
            texts = f"⟨h²⟩ {block.measured:.4g}", f"{block.predicted:.4g} ± {block.spread:.2g}"
            factor = block.measured / block.predicted
            tested.append(Deviation(f"behind block {block.name}", *texts, factor, block.z))
    of_roles = [_over_depth(rows) for rows in roles.values() if len(rows) > 2]
    tests = max(len(tested) + sum(law.layers - 1 for law, _ in of_roles), 1)
    tested += [row for _, row in of_roles if row]
    beyond = [row for row in tested if probability(abs(row.z), tests) < FALSE_ALARM]
    # Where chance cannot do it by the factor f: tanh of |ln f|/2.
    beyond.sort(key=lambda row: (-abs(row.z), -np.nan_to_num(abs(1 - 2 / (1 + row.factor)))))
    least = probability(max((abs(row.z) for row in tested), default=0.0), tests)
    laws = tuple(law for law, _ in of_roles)
    return Audit(tuple(tensors), laws, tuple(blocks), tuple(beyond), tests, least, without_signals)


def _table(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows without empty columns, of four digits, so that they fit 80 columns."""
    rows = [row._asdict() for row in rows]
    names = [n for n in rows[0] if n != "before" and any(row[n] is not None for row in rows)]
    short = [{n: float(f"{v:.4}") for n, v in r.items() if isinstance(v, float)} for r in rows]
    return [{n: (row | few)[n] for n in names} for row, few in zip(rows, short, strict=True)]


def _of_target(row: AuditedTensor, law: str | None, size: float | None) -> Deviation:
    """Distance of a tensor from what is meant, and of one that is not initialised."""
    if np.isnan(row.deviation):
        return Deviation(row.place.name, row.law, "numbers", np.nan, np.inf)
    measured, meant, z = f"{row.deviation:.4g}", "" if size is None else f"{size:.4g}", 0.0
    if law not in (None, row.law, *_ALSO.get(row.law, ())):
        # Chance gives no other law than those that have a score.
        measured, meant = f"{row.law} {measured}", f"{law} {meant}".strip()
        z = row.scores.get(str(law), np.inf)
    if size is not None:
        z = max(score(row.deviation, size, row.freedom, row.rounding), z, key=abs)
    return Deviation(row.place.name, measured, meant, row.deviation / size if size else np.nan, z)


def _over_depth(rows: list[AuditedTensor]) -> tuple[DepthLaw, Deviation | None]:
    """The law of a role, with the layer that is the farthest from it."""
    sizes, layers = np.array([(row.deviation, row.place.layer) for row in rows], float).T
    law = DepthLaw(rows[0].place.role, len(rows), "varies", float(sizes[0]))
    for name, curve in (("constant", layers**0.0), ("1/√l", layers**-0.5)):
        # A median, so that one layer does not move it.
        fit = (np.median(sizes / curve) * curve).tolist()
        pairs = zip(rows, fit, strict=True)
        z = [score(row.deviation, aim, row.freedom, row.rounding) for row, aim in pairs]
        far = [probability(abs(each), len(rows)) < FALSE_ALARM for each in z]
        if sum(far) < 2:
            at = int(np.abs(z).argmax())
            law = law._replace(law=f"layer {layers[at]:.0f} is out of line" if any(far) else name)
            row, factor = rows[at], float(sizes[at] / fit[at]) if fit[at] else np.inf
            return law, Deviation(row.place.name, "out of line", "as other layers", factor, z[at])
    return law, None
