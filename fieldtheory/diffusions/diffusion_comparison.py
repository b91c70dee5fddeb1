"""`compare` for diffusion networks: the limit of wide networks against simulated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_ensemble import ESTIMATED, DiffusionEnsemble
from fieldtheory.diffusions.diffusion_result import lines
from fieldtheory.diffusions.diffusion_solution import DiffusionSolution
from fieldtheory.montecarlo.compared_field import OFF, UNRESOLVED, WITHIN
from fieldtheory.montecarlo.extrapolation import compare
from fieldtheory.montecarlo.verdict_text import DESCRIBES, DOES_NOT
from fieldtheory.networks.activations import h
from fieldtheory.networks.family import differences
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import notes
from fieldtheory.numerics.result import Stored
from fieldtheory.numerics.storage import Labelled
from fieldtheory.plotting.depth_profiles import draw_profiles
from fieldtheory.plotting.tables import table_html, table_text

AGREES, DIFFERS = "agrees", "differs"
# Those that decide whether a width is described.
_DECIDING = ("mean", "covariance", "gram")
# Parts of a profile, and what follows from them.
_STORED = {
    "theory": "value of the theory",
    "simulation": "simulated value",
    "error": "standard error of the simulated value",
    "size": "to what deviations are relative",
}
_DERIVED = {"deviation": "relative deviation", "z": "deviation in standard errors"}


@dataclass(frozen=True, eq=False)
class ComparedProfile:
    """One quantity at the times t > 0 that theory and simulation share.

    Parameters
    ----------
    name : str
        Field of `DiffusionSolution` and `DiffusionEnsemble`.
    theory, simulation, error, size : ndarray, shape (m, P) or (m, P, P)
        ``size`` is what deviations are relative to: standard deviations for means, √(V_ii V_jj)
        for covariances and Gram matrices, 1 for the excess kurtosis.
    """

    name: str
    theory: np.ndarray
    simulation: np.ndarray
    error: np.ndarray
    size: np.ndarray

    @cached_property
    def z(self) -> np.ndarray:
        """(simulation − theory) / error; 0 where the two are equal up to rounding."""
        difference = self.simulation - self.theory
        rounding = 1e-11 * (self.size + np.abs(self.theory))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.abs(difference) <= rounding, 0.0, difference / self.error)

    @cached_property
    def deviation(self) -> np.ndarray:
        """(simulation − theory) / size."""
        difference = self.simulation - self.theory
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.z == 0, 0.0, difference / self.size)

    def numbers(self, place: Any, names: Sequence[str]) -> dict[str, float]:
        """Some numbers of an entry."""
        return {name: float(getattr(self, name)[place]) for name in names}

    def verdicts(self, threshold: float, tolerance: float) -> np.ndarray:
        """On every entry: "within" the tolerance, "off", or "not resolved" for its error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.where(self.error == 0, 0.0, threshold * self.error / self.size)
        deviation = np.abs(self.deviation)
        found = [deviation + chance <= tolerance, deviation - chance > tolerance]
        return np.select(found, [WITHIN, OFF], UNRESOLVED)


@dataclass(frozen=True, eq=False)
class DiffusionComparison(Stored):
    """The limit of wide networks against simulated ones; prints as a table with an answer below.

    Like the other results it has ``save``, ``load``, ``to_xarray`` and ``plot``.

    Parameters
    ----------
    profiles : tuple of ComparedProfile
    times : ndarray, shape (m,)
        Where they are compared.
    width, depth : int
        Of the simulated networks.
    left_out : str
        What the theory leaves out: finite width, finite depth, both or nothing.
    threshold : float
        Largest |z| that chance explains.
    tolerance : float
        Largest relative deviation with which the theory still describes the networks.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.networks.diffusion import DiffusionNetwork
    >>> net = DiffusionNetwork(depth=20, width=200)
    >>> found = ft.compare(ft.solve(net, [0.0, 1.0]), ft.simulate(net, [0.0, 1.0], samples=1000))
    >>> found.verdict, found.left_out
    ('agrees', 'finite width')
    """

    _settings: ClassVar[dict[str, type]] = {
        "width": int,
        "depth": int,
        "left_out": str,
        "threshold": float,
        "tolerance": float,
    }

    profiles: tuple[ComparedProfile, ...]
    times: np.ndarray
    width: int
    depth: int
    left_out: str
    threshold: float
    tolerance: float

    @cached_property
    def verdict(self) -> str:
        """'agrees' where chance explains all deviations, else 'differs'."""
        largest = max(np.abs(profile.z).max() for profile in self.profiles)
        return AGREES if largest <= self.threshold else DIFFERS

    @cached_property
    def description(self) -> str:
        """Whether means, covariances and Gram matrices stay within the tolerance, in a word."""
        found = {
            str(verdict)
            for profile in self.profiles
            if profile.name in _DECIDING
            for verdict in profile.verdicts(self.threshold, self.tolerance).flat
        }
        if OFF in found:
            return DOES_NOT
        return UNRESOLVED if UNRESOLVED in found else DESCRIBES

    @property
    def statement(self) -> str:
        """Both answers in two lines."""
        exact = self.left_out == "nothing"
        why = "" if exact else f"; the theory leaves out {self.left_out}"
        chance = "chance explains" if self.verdict == AGREES else "chance does not explain"
        size = max(np.abs(p.deviation).max() for p in self.profiles if p.name in _DECIDING)
        return (
            f"The theory {self.verdict}: {chance} the deviations (|z| up to "
            f"{self.threshold:.2f} may){why}.\n"
            f"Width {self.width}, depth {self.depth}: {self.description}, deviations up to "
            f"{100 * size:.2g} %, tolerance {100 * self.tolerance:.2g} %."
        )

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every entry, all with the same keys; ``beta`` is None for one input."""
        return [
            {
                "quantity": profile.name,
                "t": float(self.times[place[0]]),
                "alpha": place[1],
                "beta": place[2] if len(place) > 2 else None,
                **profile.numbers(place, (*_STORED, *_DERIVED)),
                "verdict": str(verdict),
            }
            for profile in self.profiles
            for place, verdict in np.ndenumerate(profile.verdicts(self.threshold, self.tolerance))
            # Of both orders of two inputs one.
            if len(place) < 3 or place[1] <= place[2]
        ]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """Of every quantity the entry with the largest |z|."""
        worst = [np.unravel_index(np.abs(p.z).argmax(), p.z.shape) for p in self.profiles]
        return [
            {
                "quantity": profile.name,
                "t": float(self.times[place[0]]),
                "inputs": ", ".join(str(i) for i in place[1:]),
                **profile.numbers(place, ("theory", "simulation", "error", "z")),
                "largest deviation %": float(100 * np.abs(profile.deviation).max()),
            }
            for profile, place in zip(self.profiles, worst, strict=True)
        ]

    def plot(self) -> Any:
        """Deviations from the theory over t, with bands of one standard error.

        Returns
        -------
        matplotlib.figure.Figure
        """
        profiles, errors = {}, {}
        for profile in self.profiles:
            label = rf"deviation of ${ESTIMATED[profile.name].symbol}$"
            profiles[label] = lines(profile.simulation - profile.theory)
            errors[label] = lines(profile.error)
        return draw_profiles(profiles, self.times, self.times, errors, "time $t$")

    def labelled(self, stored: bool) -> Labelled:
        """``<quantity>_theory``, ``_simulation``, ``_error`` and ``_size``, with their z-scores."""
        variables: dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]] = {}
        for profile in self.profiles:
            row = ESTIMATED[profile.name]
            for name, words in (_STORED | ({} if stored else _DERIVED)).items():
                note = notes(f"{words}: {row.long_name}", row.symbol)
                variables[f"{profile.name}_{name}"] = row.dims, getattr(profile, name), note
        time = ("time",), self.times, notes("time t = l Δt", "t")
        if stored:
            variables["times"] = time
        attributes = {name: getattr(self, name) for name in self._settings}
        return Labelled(variables, {} if stored else {"time": time}, attributes)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The comparison of the arrays, numbers and text in a file."""
        profiles = tuple(
            ComparedProfile(
                name, *[np.asarray(content[f"{name}_{part}"], float) for part in _STORED]
            )
            for name in ESTIMATED
            if f"{name}_theory" in content
        )
        settings = {
            name: kind(np.asarray(content[name]).item()) for name, kind in cls._settings.items()
        }
        return cls(profiles, np.asarray(content["times"], float), **settings)

    def __str__(self) -> str:
        return f"{table_text(self.summary, 'theory and simulation')}\n{self.statement}"

    def _repr_html_(self) -> str:
        return table_html(self.summary, self.statement)

    def __repr__(self) -> str:
        described = self.description if self.description != UNRESOLVED else "may describe"
        return (
            f"DiffusionComparison({self.verdict}, {described} width {self.width} and depth "
            f"{self.depth})"
        )


@compare.register(DiffusionSolution)
@named_arguments
def compare_diffusion(
    solution: DiffusionSolution,
    ensemble: DiffusionEnsemble,
    *,
    false_alarm: float = 1e-3,
    tolerance: float = 0.05,
) -> DiffusionComparison:
    """Hold the limit of wide networks against simulated ones: does it agree, does it describe them.

    What ``fieldtheory.compare`` does for a `DiffusionSolution`. Means, covariances and Gram
    matrices are compared, and the variance of the Gram matrix and the kurtosis where the solution
    has them, at all times that both have: the grid of infinite depth has t = 0, T/20, ..., T.

    Parameters
    ----------
    solution : DiffusionSolution
    ensemble : DiffusionEnsemble
        Of the same inputs and horizon; for a solution of finite depth, of the same depth.
    false_alarm : float
        Probability of a wrong "differs" where the theory is exact.
    tolerance : float
        Largest relative deviation with which the theory still describes the networks.

    Returns
    -------
    DiffusionComparison

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or networks (but for their width, and an infinite depth) or
        inputs differ; the message names what differs, with both values.

    Notes
    -----
    Statistical errors decide by |z|, with a threshold from Student's distribution and Bonferroni's
    correction for the number of comparisons. The networks deviate by O(1/D) from a theory that is
    not exact at their width, and by O(1/L) from infinite depth: with many samples it differs.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.networks.diffusion import DiffusionNetwork
    >>> net = DiffusionNetwork(depth=100, width=100)
    >>> limit = ft.solve(net.replace(depth=None), [0.5, 1.0])
    >>> e = ft.simulate(net, [0.5, 1.0], samples=400, method="gram")
    >>> compare_diffusion(limit, e)
    DiffusionComparison(agrees, may describe width 100 and depth 100)
    """
    from scipy import stats

    if not isinstance(ensemble, DiffusionEnsemble):
        raise TypeError(f"ensemble must be a DiffusionEnsemble, got {validation.shown(ensemble)}")
    for name, value in (("false_alarm", false_alarm), ("tolerance", tolerance)):
        validation.within(name, value, 1e-12, 1.0)
    asked, simulated = solution.network, ensemble.network
    apart = differences(asked, simulated, *(("depth",) if asked.depth is None else ()))
    if not np.array_equal(solution.inputs, ensemble.inputs):
        inputs = [validation.shown(of.inputs) for of in (solution, ensemble)]
        apart.append("inputs {} in the theory, {} in the simulation".format(*inputs))
    if apart:
        raise ValueError(
            f"ensemble must be of the network and inputs of the solution: {'; '.join(apart)}"
        )
    ours, theirs = _common(solution.times, ensemble.times)
    profiles = tuple(
        _profile(name, solution, ensemble, ours, theirs)
        for name in ESTIMATED
        if getattr(solution, name) is not None
    )
    count = sum(profile.theory.size for profile in profiles)
    threshold = float(stats.t.isf(false_alarm / (2 * count), ensemble.batches - 1))
    assert simulated.depth is not None
    return DiffusionComparison(
        profiles,
        ensemble.times[theirs],
        simulated.width,
        simulated.depth,
        _left_out(solution, ensemble),
        threshold,
        float(tolerance),
    )


def _common(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices in both of the times t > 0 that they share."""
    same = np.abs(first[:, None] - second) <= 1e-9 * first[-1]
    same[0] = False
    ours, theirs = np.nonzero(same)
    return ours, theirs


def _profile(
    name: str,
    solution: DiffusionSolution,
    ensemble: DiffusionEnsemble,
    ours: np.ndarray,
    theirs: np.ndarray,
) -> ComparedProfile:
    theory = getattr(solution, name)[ours]
    if name == "kurtosis":
        size = np.ones_like(theory)
    elif name == "mean":
        size = np.sqrt(np.diagonal(solution.covariance[ours], axis1=1, axis2=2))
    else:
        own = np.diagonal(theory, axis1=1, axis2=2)
        size = np.sqrt(own[:, :, None] * own[:, None, :])
    simulation, error = (getattr(ensemble, key)[theirs] for key in (name, f"{name}_error"))
    return ComparedProfile(name, theory, simulation, error, size)


def _left_out(solution: DiffusionSolution, ensemble: DiffusionEnsemble) -> str:
    parts = [] if solution.is_exact else ["finite width"]
    if solution.network.depth is None:
        parts.append("finite depth")
    elif ensemble.method in ("sde", "gram") and ensemble.network.activation.expression.diff(h).has(
        h
    ):
        parts.append("the steps of Euler in place of φ")
    return " and ".join(parts) or "nothing"
