"""The picture of an audit: sizes of the weights over the layers, and the stream."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from fieldtheory.plotting import style

# Roles for which a legend has room.
_NAMED = 12


@style.styled
def draw_audit(audit: Any) -> Any:
    """Deviations σ of the weights, the stream behind every block, and the share of the block.

    Last matrices of branches are green; rings mark what deviates. Without layers, l = 0.
    """
    deviating = {row.name for row in audit.deviations}
    far = {row.place.role for row in audit.tensors if row.place.name in deviating}
    roles = defaultdict(list)
    for row in [row for row in audit.tensors if row.place.layer] or audit.tensors:
        if row.place.kind not in ("norm", "bias", "norm bias") or row.place.role in far:
            roles[row.place.role].append(row)
    figure, axes = style.panels([4.8, 2.9, 2.9] if audit.blocks else [4.8], 2.5)
    _draw_roles(axes[0], [*roles.values()], deviating)
    values = [np.array([row.deviation for rows in roles.values() for row in rows])]
    if audit.blocks:
        values += [*np.array([(b.behind, b.share, b.linear) for b in audit.blocks]).T]
        layers = np.arange(1, len(audit.blocks) + 1)
        for ax, each in zip(axes[1:], values[1:], strict=False):
            ax.plot(layers, each, "o-", color=style.BLUE, markersize=3, label="measured")
        axes[1].plot(layers, values[3], "--", color=style.GRAY, label="linear law")
        axes[1].legend()
    names = r"$\sigma_l$ of the weights", "mean square of the stream", "share of the block"
    for ax, name, each in zip(axes, names, values, strict=False):
        ax.set(xlabel="layer $l$", ylabel=name)
        ax.xaxis.get_major_locator().set_params(integer=True)
        style.scale_values(ax, each)
        if ax.get_yscale() == "linear":
            ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
    return figure


def _draw_roles(ax: Any, roles: list[Any], deviating: set[str]) -> None:
    for colour, last in ((style.GREEN, True), (style.BLUE, False)):
        some = [rows for rows in roles if rows[0].place.residual is last]
        for rows, shade in zip(some, style.tints(colour, len(some)), strict=False):
            x, y, error = np.array([(r.place.layer or 0, r.deviation, r.error) for r in rows]).T
            ax.errorbar(x, y, y * error, fmt="o-", ms=3, lw=0.7, c=shade, label=rows[0].place.role)
            far = np.array([row.place.name in deviating for row in rows])
            ring = {"c": style.ORANGE, "ms": 7, "fillstyle": "none"}
            ax.plot(x[far], y[far], "o", **ring)
            # NaN, and zeros on a logarithmic axis, at its foot.
            low = x[far & ~(y > 0)]
            ax.plot(low, 0 * low, "o", transform=ax.get_xaxis_transform(), **ring)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[:_NAMED], labels[:_NAMED], loc="upper left", bbox_to_anchor=(1.0, 1.0))
