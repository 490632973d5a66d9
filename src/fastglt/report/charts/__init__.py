"""Charts of plain values: functions take rows and give a `Picture`. Drawing needs the extra `fastglt[report]`."""

from fastglt.report.charts.picture import Picture

__all__ = ["Picture"]
