"""The numbers of the algorithms for diffusion networks, in one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Counts, and errors relative to what they are of."""

    # Times of the limit of infinite depth, from 0 to T.
    places: int = 21
    # Errors of a step of an integration over time.
    rtol: float = 1e-12
    atol: float = 1e-15
    # Part of the explosion time from which on the limit is doubtful.
    close: float = 0.9
    # Errors of averages over ψ, what Mehler's series may leave out, relative to √(q_ii q_jj), and
    # kinks at which shared panels end.
    settled: float = 1e-11
    left_of_series: float = 2e-14
    kinks_at_once: int = 64
    # Errors of q, relative to the features' size, of which a warning speaks.
    warned: float = 1e-4
    # Nodes that may stand for many neurons, a quarter of them at most; what ψ and ψ² may leave of
    # their series; inputs of which the weights of all pairs of nodes are kept.
    start_nodes: tuple[int, ...] = (32, 64, 128, 256)
    start_rounding: float = 1e-15
    start_inputs: int = 16
    # Signals reach as far as this many deviations of the Gaussian that bounds them, where its tail
    # times a power is rounding.
    reach: float = 9.5
    # The range of ψ grows by this factor, so often; where ψ grows so much over it that rounding is
    # this part of S, there is no range.
    wider: float = 1.05
    tries: int = 12
    lost: float = 1e-3
    # Beyond the range ψ is switched off within one of these parts of it; a wider one is taken if it
    # leaves less than this share of the largest frequency.
    edges: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    fewer: float = 0.8
    # That is by the distribution function of a Gaussian up to so many deviations, where it is 0
    # and 1 to all digits.
    switched: float = 8.2
    # Fourier coefficients of this size, relative to the largest, are left out; most of them on
    # either side.
    negligible: float = 1e-13
    frequencies: int = 512
    # Orders of Mehler's series that are tried, and what they may leave out.
    orders: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    left: float = 1e-12
    # Nodes of a panel, and the phase that they resolve to all digits.
    nodes: int = 20
    phase: float = 9.0
    # Pairs that are followed at once, and phases that are computed at once.
    pairs_at_once: int = 256
    phases_at_once: int = 1 << 20


SETTINGS = Settings()
