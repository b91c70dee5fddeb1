"""`audit`: the start of a model against how it was meant."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.branches import AuditedBlock
from fieldtheory.audits.copies import copies_of
from fieldtheory.audits.intents import targets_of
from fieldtheory.audits.streams import AuditedStep
from fieldtheory.audits.tensors import (
    LAWS,
    AuditedTensor,
    freedom_of,
    probability,
    score,
    scores_of,
    tensors_of,
)
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.layers import draw_layers
from fieldtheory.plotting.tables import table_html, table_text

# Probability with which a correct model is called wrong, all of its tests together.
FALSE_ALARM = 1e-3
# Deviations that are listed in the text, and roles for which a legend has room.
_LISTED = 12
# Roles that a sentence names, and columns of results that tables do without.
_NAMED = 4
_UNSHOWN = "before", "against", "form", "worst", "worst_z", "added", "expected", "error"
# What is wrong with a tensor whatever is meant, and what it is not.
_FAULTS = {"not initialised": "numbers", "repeated": "rows of their own"}
# Laws besides its own that a tensor of a law does not contradict.
_ALSO = {"zeros": ("constant",), "ones": ("constant",), "few": (*LAWS, "orthogonal")}


class Deviation(NamedTuple):
    """What is not as meant, with the factor, NaN if there is none, and z, ±∞ if not by chance.

    It was tested ``against`` the "intent", the other "layers", the "theory" of a branch, or
    "chance", which gives no copies and no memory that nobody wrote.
    """

    name: str
    measured: str
    meant: str
    factor: float
    z: float
    against: str = "intent"


class DepthLaw(NamedTuple):
    """Law of σ_l: "constant", "1/√l", "varies" or "layer l is out of line"; and σ_1."""

    role: str
    layers: int
    law: str
    deviation: float


@dataclass(frozen=True, eq=False)
class Audit:
    """State of a model at its start, and its deviations from an intent; returned by `audit`.

    All ``tensors``; ``depth_laws`` of roles with three layers or more; the stream at ``blocks``,
    and of tokens behind attention and MLPs, ``stream``; ``deviations`` beyond chance, the farthest
    first; all that was ``tested``, with meant size and z; the number of ``tests``, and with which
    ``probability`` one of a correct model is as significant; ``notes`` on what is no deviation:
    frozen copies, and why there are no signals.

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
    tested: tuple[Deviation, ...]
    tests: int
    probability: float
    notes: tuple[str, ...] = ()
    stream: tuple[AuditedStep, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing deviates."""
        return not self.deviations

    @property
    def statement(self) -> str:
        """The verdict, and what was not tested."""
        count = len({row.place.role for row in self.tensors})
        tests = f"{self.tests} test{'s' * (self.tests != 1)}"
        of = f"{len(self.tensors)} tensors of {count} roles, {tests}"
        first = f"Nothing deviates: {of}, p = {self.probability:.2g} for all together."
        if not self.ok:
            name, measured, meant, factor, z, _ = self.deviations[0]
            times = "" if np.isnan(factor) else f", {factor:.3g} times that"
            number = f"{len(self.deviations)} deviation{'s' * (len(self.deviations) > 1)}"
            first = f"{number} in {of}. First {name}: {measured} and not {meant}{times}"
            first += f" (z = {z:.4g})."
        return " ".join([first, *self._limits()])

    def _limits(self) -> list[str]:
        """Sentences on what no test has seen, or none but that of the other layers."""
        sizes = Counter(row.place.role for row in self.tensors)
        names: dict[Any, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row, test in zip(self.tensors, self._tests(), strict=True):
            names[test and test.against][row.place.role].append(row.place.name)

        def listed(against: str | None) -> str:
            # Roles, and tensors of one of which others are tested in another way.
            few = names.get(against, {}).items()
            each = [n for role, some in few for n in ([role] if len(some) == sizes[role] else some)]
            more = [f"{len(each) - _NAMED} more"] * (len(each) > _NAMED)
            return ", ".join([*each[:_NAMED], *more])

        layers, none = listed("layers"), listed(None)
        text = f"Only between layers: {layers}."
        if "intent" not in names:
            agree = "Layers agree with each other; sizes were" if self.ok else "Sizes were"
            text = f"{agree} not tested."
        return [text] * bool(layers) + [f"Not tested: {none}."] * bool(none)

    def _tests(self) -> list[Deviation | None]:
        """The test of each tensor, the one that deviates if one does."""
        by_name = {row.name: row for row in (*self.tested, *reversed(self.deviations))}
        return [by_name.get(row.place.name) for row in self.tensors]

    def rows(self) -> list[dict[str, Any]]:
        """A dict for every tensor.

        ``tested`` says against what: "intent", "layers", "chance"; None if it was not tested, then
        meant, factor and z are None too.
        """
        far = {row.name for row in self.deviations}
        return [
            {"name": row.place.name, "kind": row.place.kind, "shape": "×".join(map(str, row.shape))}
            | {n: getattr(row, n) for n in ("law", "deviation", "error", "weight_variance")}
            | {"tested": test and test.against}
            | {n: test and getattr(test, n) for n in ("meant", "factor", "z")}
            | {"deviates": row.place.name in far}
            for row, test in zip(self.tensors, self._tests(), strict=True)
        ]

    def to_dataframe(self) -> Any:
        """The tensors as a DataFrame; needs pandas."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self.rows())

    def _tables(self) -> list[tuple[list[dict[str, Any]], str]]:
        """Tables with their titles; of several deviations of a role the farthest."""
        roles, groups = {row.place.name: row.place.role for row in self.tensors}, defaultdict(list)
        for row in self.deviations:
            groups[roles.get(row.name, re.sub(r"block \d+", "block *", row.name))].append(row)
        farthest = [
            rows[0]._replace(name=f"{len(rows)} × {role}") if len(rows) > 1 else rows[0]
            for role, rows in groups.items()
        ]
        tables = farthest[:_LISTED], self.depth_laws, self.blocks, self.stream
        heads = "; ".join({step.form: None for step in self.stream})
        titles = "deviations", "roles over the depth", "signals", f"stream of tokens: {heads}"
        return [(_table(rows), title) for rows, title in zip(tables, titles, strict=True) if rows]

    def __str__(self) -> str:
        tables = [table_text(*each) for each in self._tables()]
        return "\n\n".join([self.statement, *self.notes, *tables])

    def __repr__(self) -> str:
        return f"Audit({self.statement})"

    def to_html(self) -> str:
        """The verdict and the tables, all tensors among them."""
        tables = [*self._tables(), (self.rows(), "tensors")]
        texts = [f"<p>{escape(text)}</p>" for text in (self.statement, *self.notes)]
        return "".join([*texts, *(table_html(*each) for each in tables)])

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
    intent says is tested, tensor by tensor and all entries of a role together, with a probability
    of 0.001 in all that a correct model is called wrong; others are compared over the layers.

    Without one also what no initialisation gives is named: NaN, infinities, memory that nobody
    wrote, repeated rows, and copies: different parameters whose random entries are equal up to a
    factor, a sign or a transposition. Constants, tables and shared parameters are none; copies that
    are not trained, such as target networks, are a note.

    Where the last branch of a block is, by its forward pass, that of a `BlockNetwork` or
    `ResidualNetwork`, the stream behind it is tested at the width of the model, by the whole law of
    its hidden units; others have the numbers of `measure_block`. Attention is recognised likewise:
    what it adds is tested given what it reads, ``stream`` has the mean squares behind all steps as
    predicted from the Gram matrix of the embeddings, and a form that one block alone has, such as
    a missing mask, deviates.

    Parameters
    ----------
    model : torch.nn.Module
        With its weights; nothing in it changes.
    inputs : tensor, tuple of tensors or mapping, optional
        Of a forward pass, a mapping as keyword arguments; if left out drawn as the first layer
        takes them: tokens, images, vectors. ``notes`` say why there are no signals.
    intent : str, mapping or callable, optional
        A name of `fieldtheory.audits.INTENTS`; a mapping from patterns such as
        ``"*.c_proj.weight"`` to a deviation, a law ("zeros", "normal", ...), both as a tuple, such
        a name, a function of a `Place`, or None for what is not tested, of which the first that
        fits counts; or such a function of all parameters, None for what is free.

    Returns
    -------
    Audit
        ``ok``, ``statement``, ``deviations``, ``print``, ``to_dataframe()``, ``plot()``,
        ``to_html()``. The statement names what was not tested.

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
    Nothing deviates: 8 tensors of 2 roles, 10 tests, p = ...
    >>> _ = torch.nn.init.zeros_(model[2].weight)
    >>> print(audit(model).statement)
    1 deviation in 8 tensors of 2 roles, ... tests. First 2.weight: ...
    """
    from fieldtheory.audits.signals import signals_of

    tensors, tested, roles = tensors_of(model), list[Deviation](), defaultdict(list)
    targets = targets_of(intent, [row.place for row in tensors])
    copied = {copy.name: copy for copy in copies_of(model)}
    copies = [copy for copy in copied.values() if copy.is_trained]
    pooled: dict[Any, list[tuple[AuditedTensor, float]]] = defaultdict(list)
    for row in tensors:
        place, target = row.place, targets.get(row.place.name, (None, None))
        law, size = target or (None, None)
        if (place.name in targets and target) or _is_faulty(row):
            tested.append(_of_target(row, law, size))
            if size and np.isfinite(row.freedom) and place.name not in copied:
                pooled[place.role, place.kind].append((row, size))
        elif place.layer is not None and target:
            roles[place.role, place.kind, row.shape, place.fan_in].append(row)
    signals = signals_of(model, inputs, targets)
    for step in signals.steps:
        if step.name.startswith("attention"):
            texts = f"⟨f²⟩ {step.added:.4g}", f"{step.expected:.4g} ± {step.error:.2g}"
            numbers = step.added / step.expected, step.added_z
            tested.append(Deviation(step.name, *texts, *numbers, "theory"))
    for block in signals.blocks:
        if block.measured and block.predicted and block.z is not None:
            texts = f"⟨h²⟩ {block.measured:.4g}", f"{block.predicted:.4g} ± {block.spread:.2g}"
            numbers = block.measured / block.predicted, block.z
            tested.append(Deviation(f"behind block {block.name}", *texts, *numbers, "theory"))
    of_roles = [_over_depth(rows) for rows in roles.values() if len(rows) > 2]
    groups = [(role, rows) for (role, _), rows in pooled.items() if len(rows) > 1]
    compared = sum(len(rows) for _, rows in of_roles)
    # The fit of a role leaves one layer fewer.
    tests = len(tested) + compared - sum(bool(rows) for _, rows in of_roles) + len(groups)
    tested += [row for _, rows in of_roles for row in rows]
    far = {row.name for row in tested if probability(abs(row.z), tests) < FALSE_ALARM}
    for role, rows in groups:
        # What is named by itself says nothing about the others.
        near = [each for each in rows if each[0].place.name not in far]
        tested += [_of_role(role, near)] if len(near) > 1 else []
    beyond = [row for row in tested if probability(abs(row.z), tests) < FALSE_ALARM]
    own = "numbers of its own"
    beyond += [Deviation(c.name, c.text, own, np.nan, np.inf, "chance") for c in copies]
    for name, what, *values in signals.forms:
        own, others = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in values)
        are = all(isinstance(v, float) and v for v in values)
        factor = values[0] / values[1] if are else np.nan
        meant = f"{what} {others} as in other layers"
        beyond.append(Deviation(name, f"{what} {own}", meant, factor, np.inf, "layers"))
    # Where chance cannot do it by the factor f: tanh of |ln f|/2.
    beyond.sort(key=lambda row: (-abs(row.z), -np.nan_to_num(abs(1 - 2 / (1 + row.factor)))))
    largest = max((abs(row.z) for row in (*tested, *beyond)), default=0.0)
    least = probability(largest, max(tests, 1))
    frozen = [f"{copy.name}, {copy.text}" for copy in copied.values() if not copy.is_trained]
    notes = [f"Frozen copies: {len(frozen)}, as {frozen[0]}."] if frozen else []
    notes += filter(None, signals.notes)
    results = tuple(law for law, _ in of_roles), tuple(signals.blocks), tuple(beyond), tuple(tested)
    return Audit(tuple(tensors), *results, tests, least, tuple(notes), tuple(signals.steps))


def _table(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows without empty columns, of four digits, so that they fit 80 columns."""
    rows = [row._asdict() for row in rows]
    names = [n for n in rows[0] if n not in _UNSHOWN and any(row[n] is not None for row in rows)]
    short = [{n: float(f"{v:.4}") for n, v in r.items() if isinstance(v, float)} for r in rows]
    return [{n: (row | few)[n] for n in names} for row, few in zip(rows, short, strict=True)]


def _is_faulty(row: AuditedTensor) -> bool:
    return row.law.split(":")[0] in _FAULTS


def _of_target(row: AuditedTensor, law: str | None, size: float | None) -> Deviation:
    """Distance of a tensor from what is meant, and of one that is not initialised."""
    if _is_faulty(row):
        meant = _FAULTS[row.law.split(":")[0]]
        return Deviation(row.place.name, row.law, meant, np.nan, np.inf, "chance")
    aim = "" if size is None else f"{size:.4g}"
    measured, meant, z = f"{row.deviation:.4g}", aim or str(law), 0.0
    is_weight = law is None and row.weight_variance is not None
    if row.law in ("constant", "ones") and np.prod(row.shape) == 1 and (law in LAWS or is_weight):
        # One entry is no constant where random ones are meant.
        row = row._replace(law="few", freedom=1.0)
    if law not in (None, row.law, *_ALSO.get(row.law, ())):
        # Chance gives no other law than those that have a score.
        measured, meant = f"{row.law} {measured}", f"{law} {aim}".strip()
        z = row.scores.get(str(law), np.inf)
    if size is not None:
        z = max(score(row.deviation, size, row.freedom, row.rounding), z, key=abs)
    factor = row.deviation / size if size else np.nan
    return Deviation(row.place.name, measured, meant, factor, z)


def _of_role(role: str, rows: list[tuple[AuditedTensor, float]]) -> Deviation:
    """All tensors of a role together: the mean square of their entries over what is meant."""
    n = np.array([np.prod(row.shape) for row, _ in rows], float)
    squares = np.array([(row.deviation / size) ** 2 for row, size in rows])
    square = float(n @ squares / n.sum())
    fourth = float(n @ (squares**2 * [row.kurtosis for row, _ in rows]) / n.sum())
    kurtosis = max(fourth / square**2, 1 + 2 / n.sum())
    freedom = freedom_of(scores_of(kurtosis, n.sum()), kurtosis, n.sum())
    z = score(square**0.5, 1.0, freedom, 0.0)
    sizes = {size for _, size in rows}
    size, unit = (sizes.pop(), "") if len(sizes) == 1 else (1.0, " × its size")
    texts = f"{size * square**0.5:.4g}{unit} together", f"{size:.4g}{unit}"
    return Deviation(f"{len(rows)} × {role}", *texts, square**0.5, z)


def _over_depth(rows: list[AuditedTensor]) -> tuple[DepthLaw, list[Deviation]]:
    """The law of a role, with the distance of each layer from it; none of one that varies."""
    sizes, layers = np.array([(row.deviation, row.place.layer) for row in rows], float).T
    law = DepthLaw(rows[0].place.role, len(rows), "varies", float(sizes[0]))
    # Medians of the deviations of chance, by the root of χ² in `score`.
    medians = np.array([(1 - 2 / (9 * row.freedom)) ** 1.5 for row in rows])
    for name, curve in (("constant", layers**0.0), ("1/√l", layers**-0.5)):
        # A median, so that one layer does not move it.
        fit = (np.median(sizes / curve / medians) * curve).tolist()
        pairs = zip(rows, fit, strict=True)
        z = [score(row.deviation, aim, row.freedom, row.rounding) for row, aim in pairs]
        far = [probability(abs(each), len(rows)) < FALSE_ALARM for each in z]
        if sum(far) < 2:
            at = int(np.abs(z).argmax())
            law = law._replace(law=f"layer {layers[at]:.0f} is out of line" if any(far) else name)
            return law, [_of_layer(*each) for each in zip(rows, fit, z, strict=True)]
    return law, []


def _of_layer(row: AuditedTensor, aim: float, z: float) -> Deviation:
    texts = f"{row.deviation:.4g}", f"{aim:.4g} as in other layers"
    factor = row.deviation / aim if aim else np.inf
    return Deviation(row.place.name, *texts, factor, z, "layers")
