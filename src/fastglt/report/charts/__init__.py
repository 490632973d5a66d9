"""Charts of plain values: each function takes rows and gives a `Picture`. Drawing needs the extra `fastglt[report]`."""

from fastglt.report.charts.picture import Picture

__all__ = ["Picture"]
