"""Figures of runs, drawn with Matplotlib."""

from anyorder.plotting.runs import averages, convergence, overview

__all__ = ["averages", "convergence", "overview"]
