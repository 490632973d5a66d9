"""Results of an analysis for machines, as JSON values, and for people, as tables with text histograms."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from fastglt.report.tables import empty_table

if TYPE_CHECKING:
    from fastglt.analysis.distribution import Distribution

_BAR = 12  # characters of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def as_document(value: Any) -> Any:
    """Plain JSON values of a dataclass: its fields and its properties, all the way down."""
    if is_dataclass(value) and not isinstance(value, type):
        properties = [name for name, part in vars(type(value)).items() if isinstance(part, property)]
        names = [*(field.name for field in fields(value)), *properties]
        return {name: as_document(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {name: as_document(part) for name, part in value.items()}
    return [as_document(part) for part in value] if isinstance(value, list | tuple) else value


def short(count: float) -> str:
    """A count in three digits.

    >>> short(0), short(999), short(36_684), short(1_996_554_240)
    ('0', '999', '36.7 k', '2.00 G')
    """
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= 0.9995 * limit:
            scaled = count / limit
            return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f}{unit}"
    return f"{count:g}"


def bar(share: float, largest: float) -> str:
    """A share as a bar beside the largest one's.

    >>> bar(0.5, 1.0), bar(0.0, 1.0)
    ('██████', '')
    """
    eighths = round(8 * _BAR * share / largest) if largest else 0
    full, rest = divmod(eighths, 8)
    return "█" * full + _EIGHTHS[rest].strip()


def histogram(what: str, groups: "Mapping[str, Distribution]") -> Table:
    """Groups side by side: their shares in each bin, then how many they are, their mean and some quantiles."""
    first = next(iter(groups.values()))
    table = empty_table(f"{what} from", *groups, left=tuple(groups))
    shares = {name: [count / max(1, group.count) for count in group.counts] for name, group in groups.items()}
    largest = max(max(values, default=0.0) for values in shares.values())
    for place, low in enumerate(first.bin_edges[:-1]):
        cells = [f"{100 * values[place]:5.1f} % {bar(values[place], largest)}" for values in shares.values()]
        table.add_row(f"{low:.3g}", *(cell.ljust(_BAR + 8) for cell in cells))
    table.add_section()
    table.add_row("count", *(f"{group.count:,}" for group in groups.values()))
    table.add_row("mean", *("–" if group.mean is None else f"{group.mean:.3g}" for group in groups.values()))
    for name in ("p10", "median", "p90"):
        table.add_row(name, *(f"{group.quantiles[name]:.3g}" if group.count else "–" for group in groups.values()))
    return table
