"""A Matplotlib figure made without pyplot that IPython shows as a picture."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that notebooks show."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=90)
        return file.getvalue()
