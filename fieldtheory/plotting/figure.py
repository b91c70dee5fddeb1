"""The figures that results draw: matplotlib's, whose pdf files hold text as journals accept it."""

import io
import logging
from typing import Any

from matplotlib import figure, rc_context


class Figure(figure.Figure):
    """A figure that is written with fonts of type 42, wherever it is saved."""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """Write the figure to a file, as matplotlib does."""
        # It warns of the dates in matplotlib's own fonts.
        logging.getLogger("fontTools").setLevel(logging.ERROR)
        with rc_context({"pdf.fonttype": 42}):
            super().savefig(*args, **kwargs)

    def _repr_png_(self) -> bytes:
        """The picture in a notebook, also before pyplot has drawn one and told IPython how."""
        content = io.BytesIO()
        self.savefig(content, format="png", bbox_inches="tight")
        return content.getvalue()
