"""Check a certificate of `fieldtheory` with integers and fractions alone.

    python tools/check_certificate.py FILE ...

A certificate states intervals: of the kernels K^(l) and responses χ^(l) of a network of erf or
ReLU for one input or two, or of its optimal output variance K*_out. Every number is enclosed here
anew, in intervals whose ends are multiples of 2^(−bits) and are rounded outwards; π and the
arctangent are series with a bound of what is left out. A claim is accepted if the enclosure lies in
the interval and the interval is as narrow as the certificate says.

With a, c, γ of the layers, M = ⟨φφ⟩ and M' = dM/dK, or ⟨φ'φ'⟩ of two inputs,

    C^(l) = a M(K^(l-1)) + c,   K^(l) = γ² K^(l-1) + C^(l),   χ^(l) = (γ² + a M'(K^(l-1))) χ^(l-1)

    erf:   ⟨φφ⟩ = (2/π) arcsin(2k/√((1+2a)(1+2b))),   ⟨φ'φ'⟩ = (4/π)/√((1+2a)(1+2b) − 4k²)
    ReLU:  ⟨φφ⟩ = (√(ab−k²) + k (π−θ))/(2π),   ⟨φ'φ'⟩ = (π−θ)/(2π),   θ = atan2(√(ab−k²), k)

of signals with variances a, b and covariance k. K*_out is where s(K) = M''F + w M'², F = w M + c,
has a zero: s > 0 at the lower end, s < 0 at the upper end and s' < 0 in between.

Taken as given, and printed, are the kernel of the input and the parameters of the network: for
branch scales ρ, skip scales γ and variances σ² of weights and biases a = ρ² σ²_w and c = ρ² σ²_b,
and those of the readout a = σ²_w,out and c = σ²_b,out with γ = 0. Before anything is computed,
variances must not be negative, the kernel of the input must be positive semidefinite, a, c, γ must
be those of the parameters, and the file must have the keys of a certificate, each once, and no
others.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from math import isqrt
from typing import Any

ERF, RELU = "erf(h)", "Max(0, h)"
KINDS, SCALES, PAIRS = ("weight", "bias"), ("branch_scale", "skip_scale"), ("00", "11", "01")
VARIANCES = (f"{part}{kind}_variance" for part in ("", "readin_", "readout_") for kind in KINDS)
NETWORK = *SCALES, *VARIANCES
# Numbers in text, of as many characters as Python reads; ends have some digits beyond the claimed.
NUMBER, LONGEST = re.compile(r"-?[0-9]+(\.[0-9]+|/0*[1-9][0-9]*)?"), 4300
MOST_DIGITS, MOST_LAYERS = 4000, 100_000
FIELDS = "residual_kernels", "kernels", "response"
# Bits that are tried, as multiples of those of the digits, and bits beside them.
ATTEMPTS, GUARD = (2, 4, 8, 16), 64
# arctan is halved so often before its series.
HALVINGS = 8
# Widths of intervals in units of 10^(−digits): the diameter, and the rounding of both ends.
WIDTH = 3


class Rejected(Exception):
    """A claim that does not hold."""


def quoted(value: Any) -> str:
    """The beginning of what a file has."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]} ..."


def number(place: str, text: Any, signed: bool = True) -> Fraction:
    """A finite number in text, or Rejected."""
    if not (isinstance(text, str) and len(text) <= LONGEST and NUMBER.fullmatch(text)):
        raise Rejected(f'{place} must be a number such as "1.5" or "3/2", got {quoted(text)}')
    if not signed and text.startswith("-"):
        raise Rejected(f"{place} must be >= 0, got {quoted(text)}")
    return Fraction(text)


def integer(place: str, value: Any, most: int) -> int:
    """An integer from 1 on, or Rejected."""
    if type(value) is not int or not 1 <= value <= most:
        raise Rejected(f"{place} must be an integer from 1 to {most}, got {quoted(value)}")
    return value


def keyed(place: str, value: Any, keys: Collection[str]) -> dict:
    """An object with these keys and no others, or Rejected."""
    if not isinstance(value, dict) or set(value) != set(keys):
        got = ", ".join(sorted(map(str, value))) if isinstance(value, dict) else quoted(value)
        raise Rejected(f"{place} must have the keys {', '.join(keys)} and no others, got {got}")
    return value


def listed(place: str, value: Any, count: int) -> list:
    """A list of so many entries, or Rejected."""
    if not isinstance(value, list) or len(value) != count:
        got = f"{len(value)}" if isinstance(value, list) else quoted(value)
        raise Rejected(f"{place} must be a list of {count}, got {got}")
    return value


class Undecided(Exception):
    """More bits are needed."""


@dataclass(frozen=True)
class Interval:
    """The numbers from low/2^bits to high/2^bits."""

    low: int
    high: int
    bits: int

    @classmethod
    def of(cls, low: Fraction | int, bits: int, high: Fraction | int | None = None) -> Interval:
        """The smallest interval that contains a number, or all numbers up to another."""
        first, last = Fraction(low), Fraction(low if high is None else high)
        return cls(
            (first.numerator << bits) // first.denominator,
            -((-last.numerator << bits) // last.denominator),
            bits,
        )

    def _taken(self, other: Interval | Fraction | int) -> Interval:
        return other if isinstance(other, Interval) else Interval.of(other, self.bits)

    def __add__(self, other: Interval | Fraction | int) -> Interval:
        other = self._taken(other)
        return Interval(self.low + other.low, self.high + other.high, self.bits)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.bits)

    def __sub__(self, other: Interval | Fraction | int) -> Interval:
        return self + -self._taken(other)

    def __mul__(self, other: Interval | Fraction | int) -> Interval:
        other = self._taken(other)
        ends = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        return Interval(min(ends) >> self.bits, -(-max(ends) >> self.bits), self.bits)

    def __truediv__(self, other: Interval | Fraction | int) -> Interval:
        other = self._taken(other)
        if other.low <= 0 <= other.high:
            raise Undecided
        ends = [(x << self.bits, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return Interval(min(x // y for x, y in ends), max(-(-x // y) for x, y in ends), self.bits)

    __radd__, __rmul__ = __add__, __mul__

    def sqrt(self) -> Interval:
        """The root; of numbers that are not negative, whatever rounding says."""
        if self.high < 0:
            raise Undecided
        low, high = (max(0, end) << self.bits for end in (self.low, self.high))
        return Interval(isqrt(low), isqrt(high) + 1, self.bits)

    def lies_in(self, low: Fraction, high: Fraction) -> bool:
        """Whether all its numbers do."""
        ends = (Fraction(end, 1 << self.bits) for end in (self.low, self.high))
        return all(low <= end <= high for end in ends)

    def misses(self, low: Fraction, high: Fraction) -> bool:
        """Whether none of its numbers does."""
        first, last = (Fraction(end, 1 << self.bits) for end in (self.low, self.high))
        return last < low or first > high


def arctan(x: Interval) -> Interval:
    """arctan x = 2 arctan(x/(1 + √(1 + x²))), at last by its series, which alternates."""
    for _ in range(HALVINGS):
        x = x / ((x * x + 1).sqrt() + 1)
    if not -(1 << x.bits) < 2 * x.low <= 2 * x.high < 1 << x.bits:
        # Too wide for the series.
        raise Undecided
    square, total, power, n = x * x, x, x, 1
    while True:
        power, n = -(power * square), n + 2
        term = power / n
        if -1 <= term.low and term.high <= 1:
            # What is left out is at most the next term.
            return Interval(total.low - 1, total.high + 1, x.bits) * (1 << HALVINGS)
        total = total + term


@lru_cache
def pi(bits: int) -> Interval:
    """Machin's formula, 16 arctan(1/5) − 4 arctan(1/239)."""
    fifth, other = (arctan(Interval.of(Fraction(1, n), bits)) for n in (5, 239))
    return fifth * 16 - other * 4


def erf_pair(a: Interval, b: Interval, k: Interval) -> tuple[Interval, Interval]:
    """⟨φφ⟩ and ⟨φ'φ'⟩ of erf."""
    root = ((a * 2 + 1) * (b * 2 + 1) - k * k * 4).sqrt()
    return arctan(k * 2 / root) * 2 / pi(k.bits), Interval.of(4, k.bits) / (pi(k.bits) * root)


def erf_variance(K: Interval) -> tuple[Interval, Interval]:
    """⟨φ²⟩ and its derivative."""
    root = (K * 4 + 1).sqrt()
    square = arctan(K * 2 / root) * 2 / pi(K.bits)
    return square, Interval.of(4, K.bits) / (pi(K.bits) * (K * 2 + 1) * root)


def relu_pair(a: Interval, b: Interval, k: Interval) -> tuple[Interval, Interval]:
    """⟨φφ⟩ and ⟨φ'φ'⟩ of ReLU."""
    root, half = (a * b - k * k).sqrt(), pi(k.bits) / 2
    if k.low > root.high:
        left = half * 2 - arctan(root / k)
    elif k.high < -root.high:
        left = -arctan(root / k)
    else:
        left = half + arctan(k / root)
    return (root + k * left) / (half * 4), left / (half * 4)


def relu_variance(K: Interval) -> tuple[Interval, Interval]:
    """⟨φ²⟩ and its derivative."""
    return K / 2, Interval.of(Fraction(1, 2), K.bits)


AVERAGES = {ERF: (erf_variance, erf_pair), RELU: (relu_variance, relu_pair)}


def enclosures(certificate: dict, bits: int) -> Iterator[tuple[str, Interval]]:
    """Every number of the recursion, with its place in the claims."""
    of_variance, of_pair = AVERAGES[certificate["activation"]]
    exact = {pair: Fraction(value) for pair, value in certificate["input_kernel"].items()}
    # The covariance of two inputs that are the same is their variance, whatever rounding says.
    same = len(set(exact.values())) == 1
    K = {pair: Interval.of(value, bits) for pair, value in exact.items()}
    response = {pair: Interval.of(1, bits) for pair in K}
    for pair in K:
        yield from _places(pair, 0, K[pair], K[pair], response[pair])
    for l, layer in enumerate(certificate["layers"], 1):
        (weight, bias, skip), before = map(Fraction, layer), K
        K = {}
        for pair, k in before.items():
            if pair == "01":
                mean, slope = of_pair(before["00"], before["11"], k)
            if pair != "01" or same:
                mean, own = of_variance(k)
                slope = slope if pair == "01" else own
            C = mean * weight + bias
            K[pair] = k * skip**2 + C
            response[pair] = response[pair] * (slope * weight + skip**2)
            yield from _places(pair, l, C, K[pair], response[pair])


def _places(pair: str, l: int, *values: Interval) -> Iterator[tuple[str, Interval]]:
    return ((f"{field} {pair} {l}", value) for field, value in zip(FIELDS, values, strict=True))


def check_solution(certificate: dict, bits: int) -> None:
    """Accept the kernels and responses of a network, or raise."""
    claims = certificate["claims"]
    for place, value in enclosures(certificate, bits):
        name, pair, l = place.split()
        # Widths are those of the largest entry of a layer.
        size = max(abs(Fraction(end)) for rows in claims[name].values() for end in rows[int(l)])
        accept(place, value, claims[name][pair][int(l)], size, certificate["digits"])


def accept(place: str, value: Interval, ends: list[str], size: Fraction, digits: int) -> None:
    """Pass if an interval is narrow and contains what it is said to contain."""
    low, high = map(Fraction, ends)
    if not 0 <= high - low <= WIDTH * size / 10**digits:
        raise Rejected(f"{place}: the interval from {ends[0]} to {ends[1]} has no {digits} digits")
    if value.misses(low, high):
        raise Rejected(f"{place}: not between {ends[0]} and {ends[1]}")
    if not value.lies_in(low, high):
        raise Undecided


def check_output_variance(certificate: dict, bits: int) -> None:
    """Accept the interval of K*_out of erf, or raise."""
    weight, bias = Fraction(certificate["weight"]), Fraction(certificate["bias"])
    (low, high), digits = map(Fraction, certificate["interval"]), certificate["digits"]
    if not 0 < low < high <= low + WIDTH * high / 10**digits:
        raise Rejected(f"the interval from {float(low)} to {float(high)} has no {digits} digits")

    def slopes(K: Interval) -> tuple[Interval, Interval]:
        square, first = erf_variance(K)
        u, v = (Interval.of(2, bits) / (K * n + 1) for n in (2, 4))
        second = -(first * (u + v))
        third = first * ((u + v) * (u + v) + u * u + v * v * 2)
        F = square * weight + bias
        return second * F + first * first * weight, third * F + first * second * (3 * weight)

    at_low, at_high = (slopes(Interval.of(end, bits))[0] for end in (low, high))
    within = slopes(Interval.of(low, bits, high))[1]
    if at_low.high < 0 or at_high.low > 0 or within.low > 0:
        raise Rejected("the interval has no maximum of M' F")
    if not (at_low.low > 0 > at_high.high and within.high < 0):
        raise Undecided


def require_solution(certificate: dict) -> None:
    """Reject what is no network, no kernel of its inputs or no claim of all its layers."""
    depth = integer("depth", certificate["depth"], MOST_LAYERS)
    given = {}
    for name, value in keyed("network", certificate["network"], NETWORK).items():
        if name in SCALES:
            scales = enumerate(listed(name, value, depth), 1)
            given[name] = [number(f"{name} of layer {l}", scale) for l, scale in scales]
        else:
            given[name] = number(name, value, signed=False)
    for l, layer in enumerate(listed("layers", certificate["layers"], depth + 1), 1):
        part, rho, skip = "readout_", Fraction(1), Fraction(0)
        if l <= depth:
            part, (rho, skip) = "", (given[name][l - 1] for name in SCALES)
        weight, bias = (rho**2 * given[f"{part}{kind}_variance"] for kind in KINDS)
        stated = [number(f"layer {l}", value) for value in listed(f"layer {l}", layer, 3)]
        if stated != [weight, bias, skip]:
            raise Rejected(f"a, c, γ of layer {l} are not those of the parameters of the network")
    kernel = certificate["input_kernel"]
    pairs = PAIRS if isinstance(kernel, dict) and len(kernel) > 1 else PAIRS[:1]
    keyed("input_kernel", kernel, pairs)
    K = {pair: number(f"input_kernel {pair}", kernel[pair], pair == "01") for pair in pairs}
    if len(K) > 1 and K["01"] ** 2 > K["00"] * K["11"]:
        raise Rejected("input_kernel must be positive semidefinite, but 01² exceeds 00 · 11")
    for field, of_pairs in keyed("claims", certificate["claims"], FIELDS).items():
        for pair, rows in keyed(f"claims of {field}", of_pairs, pairs).items():
            for l, ends in enumerate(listed(f"claims of {field} {pair}", rows, depth + 2)):
                for end in listed(f"{field} {pair} {l}", ends, 2):
                    number(f"{field} {pair} {l}", end)


def require_output_variance(certificate: dict) -> None:
    """Reject what is no network or no interval."""
    if certificate["activation"] != ERF:
        raise Rejected(f"{certificate['activation']} has no optimal output variance")
    for name in KINDS:
        number(name, certificate[name], signed=False)
    for end in listed("interval", certificate["interval"], 2):
        number("interval", end)


def shown(text: str) -> str:
    """= and a number, or ≈ and its first digits."""
    if len(text) <= 12:
        return f"= {text}"
    value = Fraction(text)
    return f"≈ {Decimal(value.numerator) / Decimal(value.denominator):.17g}"


def assumed(certificate: dict) -> Iterator[str]:
    """What a certificate is about, in lines: nothing of it is proven."""
    if certificate["kind"] != "solution":
        yield f"σ²_w {shown(certificate['weight'])}, σ²_b {shown(certificate['bias'])}"
        return
    network, depth, l = certificate["network"], certificate["depth"], 1
    kernel = certificate["input_kernel"].items()
    yield "input kernel: " + ", ".join(f"{pair} {shown(value)}" for pair, value in kernel)
    weight, bias = (shown(network[f"{kind}_variance"]) for kind in KINDS)
    rows = zip(certificate["layers"], [*network["branch_scale"], None], strict=True)
    for (layer, rho), same in groupby(rows):
        first, l = l, l + len([*same])
        which = f"layers {first} to {l - 1}" if l - first > 1 else f"layer {first}"
        of = "the readout" if first > depth else f"ρ {shown(rho)}, σ²_w {weight}, σ²_b {bias}"
        values = ", ".join(f"{name} {shown(x)}" for name, x in zip("acγ", layer, strict=True))
        yield f"{which}: {values}, of {of}"


# The keys of each kind, what they must be, and what is proven.
CHECKS: dict[str, tuple[str, Callable[[dict], None], Callable[[dict, int], None]]] = {
    "solution": ("depth network layers input_kernel claims", require_solution, check_solution),
    "optimal output variance": (
        *("weight bias interval", require_output_variance, check_output_variance),
    ),
}


def check(certificate: dict) -> str:
    """What is proven; Rejected if it is not."""
    kind = certificate.get("kind") if isinstance(certificate, dict) else None
    if not isinstance(kind, str) or kind not in CHECKS:
        raise Rejected(f"kind must be one of {', '.join(CHECKS)}, got {quoted(kind)}")
    keys, require, prove = CHECKS[kind]
    keyed("certificate", certificate, ("kind", "activation", "digits", *keys.split()))
    digits = integer("digits", certificate["digits"], MOST_DIGITS)
    activation = certificate["activation"]
    if not isinstance(activation, str) or activation not in AVERAGES:
        raise Rejected(f"only {ERF} and {RELU} can be checked here, not {quoted(activation)}")
    require(certificate)
    for times in ATTEMPTS:
        try:
            prove(certificate, GUARD + times * (10 * digits // 3))
        except Undecided:
            continue
        return f"{kind} of {activation}: proven to {digits} digits"
    raise Rejected("not decided: an interval ends too close to the number")


def unique(pairs: list[tuple[str, Any]]) -> dict:
    """An object of JSON whose keys differ, or Rejected."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Rejected(f"the key {quoted(key)} stands there twice")
        found[key] = value
    return found


def read(path: str) -> Any:
    """What a file has, or Rejected."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=unique)
    except OSError as error:
        raise Rejected(f"it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Rejected(f"it is no JSON: {error}") from None


def main(paths: list[str]) -> int:
    """Check files; the number of those that are rejected."""
    if not paths:
        print(__doc__)
    rejected = 0
    for path in paths:
        try:
            certificate = read(path)
            print(f"{path}: accepted, {check(certificate)}")
            print(*(f"  given: {line}" for line in assumed(certificate)), sep="\n")
        except Rejected as error:
            print(f"{path}: rejected, {error}")
            rejected += 1
    return rejected


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
