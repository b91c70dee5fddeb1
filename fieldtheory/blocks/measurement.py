"""The result of `measure_block`: correlators of a block, and the scales that make it critical."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fieldtheory.blocks.estimates import Scales, correlators, critical_fields, solved_scales
from fieldtheory.numerics.fields import notes
from fieldtheory.numerics.storage import Labelled, Variables
from fieldtheory.numerics.stored import Stored
from fieldtheory.plotting.tables import table_html, table_text

# |z| up to which a deviation of a susceptibility from 1 counts as chance.
_CHANCE = 3.0
_ROUNDING = 1e-9
_SETTINGS = {"block": str, "width": int, "samples": int, "seed": int, "skip_scale": float}


# In text, in LaTeX and in words.
_NUMBERS = {
    "G_zz": ("G_zz", r"G_{zz}", "mean square of the signal"),
    "G_RR": ("G_RR", r"G_{RR}", "mean square of the block's output"),
    "G_Rz": ("G_Rz", r"G_{Rz}", "overlap of the block's output with the signal"),
    "skip_scale": ("γ", r"\gamma", "scale of the skip connection"),
    "branch_scale": ("ξ", r"\xi", "scale of the branch"),
    "parallel": ("χ_∥", r"\chi_\parallel", "parallel susceptibility"),
    "perpendicular": ("χ_⊥", r"\chi_\perp", "perpendicular susceptibility"),
}
_PAIRS = {
    "pairs_zz": ("", r"G_{zz}^{\alpha\beta}", "correlator of the signal"),
    "pairs_RR": ("", r"G_{RR}^{\alpha\beta}", "correlator of the block's output"),
    "pairs_Rz": ("", r"G_{Rz}^{\alpha\beta}", "correlator of the block's output with the signal"),
    "kernel": ("", r"K^{(1)}", "kernel after the layer"),
}
_SOLVED = tuple(
    f"{name}{suffix}"
    for name in ("branch_scale", "parallel", "perpendicular")
    for suffix in ("", "_error")
)


@dataclass(frozen=True, eq=False)
class BlockMeasurement(Stored):
    """Result of `measure_block`; it prints as a table, with its meaning below.

    =============  ===============  ===============================================================
    field          shape            meaning
    =============  ===============  ===============================================================
    G_zz           ()               mean of z², PDLT-B (B.42)
    G_RR           ()               mean of R(z)², PDLT-B (B.42)
    G_Rz           ()               mean of R(z) z, PDLT-B (B.43)
    pairs_zz       (P, P)           G_zz, G_RR and G_Rz of every pair of inputs: ⟨z_α z_β⟩,
    pairs_RR       (P, P)           ⟨R_α R_β⟩ and ⟨R_α z_β⟩, of which the above are the means of
    pairs_Rz       (P, P)           the diagonals; PDLT-B (B.41), (B.40), averaged over neurons
    skip_scale     ()               γ, as it was given
    branch_scale   ()               ξ with which a layer keeps the mean variance, PDLT-B (B.45)
    parallel       ()               χ_∥ with these (γ, ξ), PDLT-B (B.13), (B.15)
    perpendicular  ()               χ_⊥ with these (γ, ξ), PDLT-B (B.14), (B.16)
    kernel         (P, P)           the kernel after a layer with these (γ, ξ), PDLT-B (B.44)
    =============  ===============  ===============================================================

    The susceptibilities are NaN where they cannot be measured, see `measure_block`.

    Each but γ has its standard error in ``<name>_error``, from the jackknife over at most 40
    batches, so that ratios and solutions have the correlations of what was measured. For other
    (γ, ξ) see `scales`. Like the other results it has ``save``, ``load``, ``to_xarray``, ``plot``.

    The susceptibilities are those of all inputs together: all of z is stretched, and z is compared
    with a signal that differs in an independent direction of the same covariance K0.

    Beside these, ``block`` is what the block is called, ``input_kernel`` (P, P) is K0, and
    ``batch_sizes`` (g,) and ``batch_means`` (g, 3 P² + 5) are what was measured: the number of
    samples in every batch and their mean moments.

    Examples
    --------
    >>> from fieldtheory.blocks.measuring import measure_block
    >>> def leaky(width, rng):                              # R(z) = W z − z/2
    ...     W = rng.normal(size=(width, width)) / width**0.5
    ...     return lambda z: z @ W.T - z / 2
    >>> m = measure_block(leaky, width=50, samples=200)
    >>> m.G_RR, m.G_RR_error, m.G_Rz                        # 1 + 1/4 and −1/2
    (1.25, 0.02, -0.51)
    >>> print(m.statement)
    Scale the skip by 0.707107 and the branch by 0.9820 ± 0.0094 to keep the variance 1.
    Perturbations of the size of the signal are kept: a factor 1 a layer.
    Perturbations of differences between signals are kept: a factor 0.996 ± 0.021 a layer.
    >>> round(m.scales(skip_scale=1.0).branch_scale, 2)     # γ = 1 is possible as it opposes z
    0.8
    """

    block: str
    width: int
    input_kernel: np.ndarray
    samples: int
    seed: int
    skip_scale: float
    batch_sizes: np.ndarray
    batch_means: np.ndarray
    G_zz: float
    G_zz_error: float
    G_RR: float
    G_RR_error: float
    G_Rz: float
    G_Rz_error: float
    pairs_zz: np.ndarray
    pairs_zz_error: np.ndarray
    pairs_RR: np.ndarray
    pairs_RR_error: np.ndarray
    pairs_Rz: np.ndarray
    pairs_Rz_error: np.ndarray
    branch_scale: float
    branch_scale_error: float
    parallel: float
    parallel_error: float
    perpendicular: float
    perpendicular_error: float
    kernel: np.ndarray
    kernel_error: np.ndarray

    @property
    def inputs(self) -> int:
        """P."""
        return len(self.input_kernel)

    def scales(
        self, *, skip_scale: float | None = None, branch_scale: float | None = None
    ) -> Scales:
        """Other scales that keep the kernel, from the same measurement.

        Parameters
        ----------
        skip_scale : float, optional
            γ >= 0, for which PDLT-B (B.45) is solved for ξ.
        branch_scale : float, optional
            ξ >= 0, for which it is solved for γ: the larger solution.

        Returns
        -------
        Scales

        Raises
        ------
        TypeError, ValueError
            If not one of them is given, or if there is no solution.

        Examples
        --------
        >>> from fieldtheory.blocks.measuring import measure_block
        >>> def orthogonal(width, rng):
        ...     Q = np.linalg.qr(rng.normal(size=(width, width)))[0]
        ...     return lambda z: z @ Q
        >>> m = measure_block(orthogonal, 20, 400)
        >>> round(m.scales(branch_scale=0.6).skip_scale, 1)
        0.8
        """
        if (skip_scale is None) == (branch_scale is None):
            raise ValueError("one of skip_scale and branch_scale must be given")
        return solved_scales(
            self.batch_sizes, self.batch_means, self.input_kernel, skip_scale, branch_scale
        )

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every number measured: ``quantity``, ``symbol``, ``value``, ``error``."""
        rows = []
        for name, (symbol, _, _) in _NUMBERS.items():
            value, error = float(getattr(self, name)), float(getattr(self, f"{name}_error", 0.0))
            if not np.isfinite(value):
                # A susceptibility that cannot be measured, as the statement says.
                continue
            # What is the same for every block fluctuates by rounding.
            error = 0.0 if error <= _ROUNDING * abs(value) else error
            rows.append({"quantity": name, "symbol": symbol, "value": value, "error": error})
        return rows

    @property
    def statement(self) -> str:
        """Advice on the block, and whether the network is critical then, in words."""
        return "\n".join(
            [
                f"Scale the skip by {self.skip_scale:.6g} and the branch by "
                f"{_with_error(self.branch_scale, self.branch_scale_error)} to keep the variance "
                f"{self.input_kernel.trace() / self.inputs:.6g}.",
                _fate("the size of the signal", self.parallel, self.parallel_error),
                _fate("differences between signals", self.perpendicular, self.perpendicular_error),
            ]
        )

    def plot(self) -> Any:
        """ξ for every γ, and the susceptibilities that come with it, each in a panel.

        Bands and bars are one standard error; points are at the γ that was given.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fieldtheory.plotting.critical_scales import draw_scales

        skips = np.linspace(0.0, max(1.0, self.skip_scale), 49)
        scales = critical_fields(self.batch_sizes, self.batch_means, self.input_kernel, skips, None)
        mine = {name: getattr(self, name) for name in ("skip_scale", *_SOLVED)}
        return draw_scales(scales, mine, self.block)

    def labelled(self, stored: bool) -> Labelled:
        """The batches alone for files; with all that follows from them for `to_xarray`."""
        pair = ("input", "input_")
        variables: Variables = {
            "input_kernel": (pair, self.input_kernel, notes("kernel of the inputs", "K^{(0)}")),
            "batch_sizes": (("batch",), self.batch_sizes, notes("samples in a batch", "n_b")),
            "batch_means": (("batch", "moment"), self.batch_means, notes("mean moments", "m_b")),
        }
        if not stored:
            for name, (_, latex, words) in (_NUMBERS | _PAIRS).items():
                if name in _SETTINGS:
                    continue
                dims = pair if name in _PAIRS else ()
                error = notes(f"standard error of the {words}", rf"\sigma[{latex}]")
                variables[name] = dims, getattr(self, name), notes(words, latex)
                variables[f"{name}_error"] = dims, getattr(self, f"{name}_error"), error
        settings = {name: getattr(self, name) for name in _SETTINGS}
        inputs = np.arange(1, self.inputs + 1)
        return Labelled(variables, {} if stored else {"input": inputs, "input_": inputs}, settings)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The measurement of the arrays, numbers and text in a file."""
        settings = {
            name: kind(np.asarray(content[name]).item()) for name, kind in _SETTINGS.items()
        }
        return cls.of_batches(
            settings,
            np.asarray(content["input_kernel"], float),
            np.asarray(content["batch_sizes"], int),
            np.asarray(content["batch_means"], float),
        )

    @classmethod
    def of_batches(
        cls, settings: dict[str, Any], kernel: np.ndarray, sizes: np.ndarray, means: np.ndarray
    ) -> Self:
        """The measurement that follows from the means over batches.

        Parameters
        ----------
        settings : dict
            ``block``, ``width``, ``samples``, ``seed`` and ``skip_scale``.
        kernel, sizes, means : ndarray
            ``input_kernel``, ``batch_sizes`` and ``batch_means``.

        Raises
        ------
        ValueError
            If the block vanishes, or no ξ > 0 keeps the kernel.
        """
        values = correlators(sizes, means, len(kernel))
        if not values["G_RR"] > 0:
            raise ValueError("block must not vanish, got G_RR = 0: nothing to scale")
        scales = solved_scales(sizes, means, kernel, settings["skip_scale"], None)._asdict()
        del scales["skip_scale"], scales["skip_scale_error"]
        return cls(
            **settings,
            input_kernel=kernel,
            batch_sizes=sizes,
            batch_means=means,
            **values,
            **scales,
        )

    def __str__(self) -> str:
        return f"{table_text(self.rows, self.title)}\n{self.statement}"

    def _repr_html_(self) -> str:
        rows = [row | {"symbol": f"${_NUMBERS[row['quantity']][1]}$"} for row in self.rows]
        words = "".join(f"<p>{line}</p>" for line in self.statement.splitlines())
        return table_html(rows, self.title) + words

    def __repr__(self) -> str:
        branch = _with_error(self.branch_scale, self.branch_scale_error)
        return (
            f"BlockMeasurement({self.block}, width={self.width}, samples={self.samples}, "
            f"γ={self.skip_scale:.6g}, ξ={branch})"
        )

    @property
    def title(self) -> str:
        """Description of the measurement, in a line."""
        return f"{self.block}, width {self.width}, {self.samples} samples"


def _with_error(value: float, error: float) -> str:
    """A value to two digits of its error, as 1.234 ± 0.015."""
    if error <= _ROUNDING * abs(value):
        return f"{value:.6g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _fate(what: str, value: float, error: float) -> str:
    """Fate of perturbations in many layers, from a susceptibility."""
    if not np.isfinite(value):
        return f"Perturbations of {what} cannot be measured: the block jumps or is rounded."
    growth = f"a factor {_with_error(value, error)} a layer"
    if abs(value - 1) <= max(_CHANCE * error, _ROUNDING):
        return f"Perturbations of {what} are kept: {growth}."
    if value <= 0:
        return f"Perturbations of {what} are lost: {growth}."
    fate = "grow" if value > 1 else "decay"
    return f"Perturbations of {what} {fate}: {growth}, e in {1 / abs(math.log(value)):.3g} layers."
