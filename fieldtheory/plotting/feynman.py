"""Pictures of diagrams, for matplotlib and TikZ: full lines for kernels, dashed for conjugates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, styled

_LEG_NAMES = "lmn"
# Half width of the bundle of lines that join the same points, and the size of a loop.
_BEND, _LOOP = 0.75, 1.25
_FULL, _DASHED = r"$C$", r"$\tilde{C}$"


class Stroke(NamedTuple):
    """Half a line, a cubic Bezier curve of four points (4, 2), dashed at a conjugate."""

    points: np.ndarray
    dashed: bool


class Picture(NamedTuple):
    """A diagram on the plane, about the origin: vertices (V, 2), labels of the legs, strokes."""

    vertices: np.ndarray
    names: list[tuple[str, np.ndarray]]
    strokes: list[Stroke]


def picture(graph: Any) -> Picture:
    """Places of the points and lines of a diagram."""
    places = _places(graph)
    strokes: list[Stroke] = []
    for curve, (kind, *_) in zip(_curves(graph, places), graph.lines, strict=True):
        first, second = _halves(curve)
        strokes += [Stroke(first, False), Stroke(second, kind == "G12")]
    names = []
    for leg in range(graph.legs):
        (other,) = [b if a == leg else a for _, a, b in graph.lines if leg in (a, b)]
        away = places[leg] - places[other]
        name = _LEG_NAMES[leg] if leg < len(_LEG_NAMES) else f"l_{{{leg + 1}}}"
        names.append((f"${name}$", places[leg] + 0.28 * away / np.linalg.norm(away)))
    corners = np.concatenate([s.points for s in strokes])
    centre = (corners.min(axis=0) + corners.max(axis=0)) / 2
    return Picture(
        places[graph.legs :] - centre,
        [(name, place - centre) for name, place in names],
        [Stroke(points - centre, dashed) for points, dashed in strokes],
    )


@styled
def draw(graphs: Sequence[Any], titles: Sequence[str], grey: Sequence[bool] = ()) -> Any:
    """Diagrams side by side, with a legend below."""
    from matplotlib.lines import Line2D

    from fieldtheory.plotting.figure import Figure

    columns = min(6, len(graphs))
    rows = -(-len(graphs) // columns)
    # A legend needs the width of two panels.
    figure = Figure(figsize=(1.3 * max(columns, 2), 1.25 * rows + 0.35), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes:
        ax.set_axis_off()
    faded = grey or [False] * len(graphs)
    for ax, graph, title, pale in zip(axes, graphs, titles, faded, strict=False):
        _draw(ax, picture(graph), pale)
        ax.set_title(title, fontsize=8)
    handles = [
        Line2D([], [], color=BLUE, label=_FULL),
        Line2D([], [], color=ORANGE, linestyle=(0, (2, 1.2)), label=_DASHED),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def tikz(graphs: Sequence[Any], titles: Sequence[str]) -> str:
    """A ``tikzpicture`` of diagrams side by side with a legend; it needs no library of TikZ.

    >>> from types import SimpleNamespace
    >>> print(tikz([SimpleNamespace(legs=2, vertices=(), lines=(("G12", 0, 1),))], [""]))
    \\begin{tikzpicture}[scale=0.6, thick]
    \\begin{scope}[shift={(0.00,0.00)}]
    \\draw (-0.50,0.00) .. controls (-0.33,0.00) and (-0.17,0.00) .. (0.00,0.00);
    \\draw[dashed] (0.00,0.00) .. controls (0.17,0.00) and (0.33,0.00) .. (0.50,0.00);
    \\node at (-0.78,0.00) {$l$};
    \\node at (0.78,0.00) {$m$};
    \\end{scope}
    \\draw (0,-2.4) -- +(1,0) node[right] {$C$};
    \\draw[dashed] (3,-2.4) -- +(1,0) node[right] {$\\tilde{C}$};
    \\end{tikzpicture}
    """
    # In TikZ the width of the text of an article holds so many, at so many centimetres each.
    tikz_columns, tikz_step = 4, 4.8
    lines, row = [r"\begin{tikzpicture}[scale=0.6, thick]"], 0
    for number, (graph, title) in enumerate(zip(graphs, titles, strict=True)):
        row, column = divmod(number, tikz_columns)
        x, y = tikz_step * column, 0.0 - tikz_step * row
        lines.append(rf"\begin{{scope}}[shift={{({x:.2f},{y:.2f})}}]")
        graphics = picture(graph)
        for points, dashed in graphics.strokes:
            a, b, c, d = map(_at, points)
            style = "[dashed]" if dashed else ""
            lines.append(rf"\draw{style} {a} .. controls {b} and {c} .. {d};")
        lines += [rf"\fill {_at(point)} circle (0.09);" for point in graphics.vertices]
        lines += [rf"\node at {_at(place)} {{{name}}};" for name, place in graphics.names]
        if title:
            lines.append(rf"\node at (0,2.2) {{{title}}};")
        lines.append(r"\end{scope}")
    below = f"{-tikz_step * (row + 0.5):.1f}"
    lines.append(rf"\draw (0,{below}) -- +(1,0) node[right] {{{_FULL}}};")
    lines.append(rf"\draw[dashed] (3,{below}) -- +(1,0) node[right] {{{_DASHED}}};")
    return "\n".join([*lines, r"\end{tikzpicture}"])


def _at(point: np.ndarray) -> str:
    # Without a negative zero.
    x, y = np.round(point, 2) + 0.0
    return f"({x:.2f},{y:.2f})"


def _draw(ax: Any, drawing: Picture, pale: bool) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    for points, dashed in drawing.strokes:
        colour = GRAY if pale else ORANGE if dashed else BLUE
        style: Any = (0, (2, 1.2)) if dashed else "-"
        patch = PathPatch(Path(points, codes), fill=False, edgecolor=colour, linestyle=style)
        patch.set_linewidth(1.2)
        ax.add_patch(patch)
    if len(drawing.vertices):
        ax.plot(*drawing.vertices.T, "o", color=GRAY if pale else "black", markersize=3.5)
    for name, place in drawing.names:
        ax.text(*place, name, ha="center", va="center", fontsize=8, color=GRAY if pale else "black")
    corners = np.concatenate([s.points for s in drawing.strokes] + [[p] for _, p in drawing.names])
    reach = max(1.3, float(np.abs(corners).max()) + 0.2)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    ax.set_aspect("equal")


def _places(graph: Any) -> np.ndarray:
    """Points in the plane at distances like those along the lines, the first leg on the left."""
    size = graph.legs + len(graph.vertices)
    wanted = np.full((size, size), np.inf)
    np.fill_diagonal(wanted, 0.0)
    for _, a, b in graph.lines:
        if a != b:
            wanted[a, b] = wanted[b, a] = 1.0
    for k in range(size):
        wanted = np.minimum(wanted, wanted[:, k, None] + wanted[k])
    angles = 2 * np.pi * np.arange(size) / size + 0.1
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    weights = 1 / (wanted + np.eye(size)) ** 2 - np.eye(size)
    laplacian = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    # Stress majorisation (Gansner, Koren, North 2004).
    for _ in range(300):
        differences = places[:, None] - places
        lengths = np.linalg.norm(differences, axis=2) + np.eye(size)
        pull = weights * wanted / lengths
        places = laplacian @ (pull[:, :, None] * differences).sum(axis=1)
    places = places - (places.min(axis=0) + places.max(axis=0)) / 2
    target = places[1] if graph.legs == 2 else places[graph.legs :].mean(axis=0)
    x, y = target - places[0]
    rotation = np.array([[x, y], [-y, x]]) / np.hypot(x, y)
    return places @ rotation.T


def _curves(graph: Any, places: np.ndarray) -> list[np.ndarray]:
    """A cubic curve for each line, lines between the same points apart from each other."""
    bundles: dict[tuple[int, int], list[int]] = {}
    for number, (_, a, b) in enumerate(graph.lines):
        bundles.setdefault((min(a, b), max(a, b)), []).append(number)
    curves: dict[int, np.ndarray] = {}
    for (a, b), numbers in bundles.items():
        if a == b:
            angles = _free_angles(a, bundles, places, len(numbers))
            for number, angle in zip(numbers, angles, strict=True):
                curves[number] = _loop(places[a], angle)
            continue
        along = places[b] - places[a]
        across = np.array([-along[1], along[0]])
        for place, number in enumerate(numbers):
            offset = _BEND * (2 * place / (len(numbers) - 1) - 1) if len(numbers) > 1 else 0.0
            inner = [places[a] + t * along + offset * across for t in (1 / 3, 2 / 3)]
            curve = np.array([places[a], *inner, places[b]])
            curves[number] = curve if graph.lines[number][1] == a else curve[::-1]
    return [curves[number] for number in range(len(graph.lines))]


def _free_angles(
    point: int, bundles: dict[tuple[int, int], list[int]], places: np.ndarray, count: int
) -> list[float]:
    """Directions in which nothing leaves a point, in the middle of the widest gaps."""
    ends = [b if a == point else a for a, b in bundles if point in (a, b) and a != b]
    used = [float(np.arctan2(*(places[end] - places[point])[::-1])) for end in ends]
    angles: list[float] = []
    for _ in range(count):
        ordered = sorted(used)
        gaps = np.diff([*ordered, ordered[0] + 2 * np.pi])
        widest = int(np.argmax(np.round(gaps, 6)))
        # Several loops share the one gap behind a line.
        part = 1 / (count - len(angles) + 1)
        angles.append(ordered[widest] + float(gaps[widest]) * part)
        used.append(angles[-1])
    return angles


def _loop(point: np.ndarray, angle: float) -> np.ndarray:
    sides = [angle - 0.65, angle + 0.65]
    inner = [point + _LOOP * np.array([np.cos(a), np.sin(a)]) for a in sides]
    return np.array([point, *inner, point])


def _halves(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A cubic curve as two (de Casteljau)."""
    a, b, c, d = curve
    ab, bc, cd = (a + b) / 2, (b + c) / 2, (c + d) / 2
    abc, bcd = (ab + bc) / 2, (bc + cd) / 2
    middle = (abc + bcd) / 2
    return np.array([a, ab, abc, middle]), np.array([middle, bcd, cd, d])
