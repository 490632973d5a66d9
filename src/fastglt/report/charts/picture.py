"""A chart that can be shown, saved and put into a page: a Vega-Lite description, and what it says in words."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from fastglt.errors import InputError, MachineError
from fastglt.report.charts.theme import DARK, PAPER, config
from fastglt.system.storage import write_atomically

Spec = dict[str, Any]
FORMATS = (".svg", ".png", ".pdf", ".json")
_VERSION = "5.20"  # of Vega-Lite, among those that vl-convert has
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_NARROW = 420  # below this width legends have two columns
_LABELS = 70  # what labels take beside a panel


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A chart. In a notebook it shows itself; `save` writes it as SVG, PNG, PDF, or as Vega-Lite's JSON."""

    title: str
    text: str  # what it shows, for those who do not see it
    spec: Spec = field(repr=False)  # without size, title and colours of the surroundings
    width: int = 560

    def vega_lite(self, *, width: int | None = None, title: bool = True, paper: str | None = PAPER) -> Spec:
        """The whole description, of a width; `fastglt` needs nothing else to draw it, and neither do others."""
        own = sized(self.spec, width or self.width)
        head = {"title": self.title} if title else {}
        return {"$schema": _SCHEMA, **head, "description": self.text, "config": config(paper=paper), **own}

    def svg(
        self, *, dark: bool = False, width: int | None = None, title: bool = True, paper: str | None = PAPER
    ) -> str:
        """As SVG, drawn without a browser."""
        spec = self.vega_lite(width=width, title=title, paper=paper)
        drawn: str = _vl_convert().vegalite_to_svg(json.dumps(spec), vl_version=_VERSION, allowed_base_urls=[])
        return in_the_dark(drawn) if dark else drawn

    def save(self, path: str | Path, *, dark: bool = False, width: int | None = None, scale: float = 2.0) -> None:
        """Write the picture; the name's ending says how. `scale` is pixels for each point of a PNG."""
        place = Path(path)
        ending = place.suffix.lower()
        if ending not in FORMATS:
            raise InputError(f"a picture's name must end in {', '.join(FORMATS)} (got '{place}')")
        if ending == ".json":
            write_atomically(place, (json.dumps(self.vega_lite(width=width), indent=2) + "\n").encode())
            return
        svg = self.svg(dark=dark, width=width)
        convert = _vl_convert()
        contents: dict[str, Callable[[], bytes]] = {
            ".svg": svg.encode,
            ".png": lambda: bytes(convert.svg_to_png(svg, scale=scale)),
            ".pdf": lambda: bytes(convert.svg_to_pdf(svg)),
        }
        write_atomically(place, contents[ending]())

    def _repr_html_(self) -> str:
        return f'<div style="background:{PAPER};padding:8px;overflow-x:auto">{self.svg()}</div>'


def sized(spec: Mapping[str, Any], width: int, *, whole: bool = True) -> Spec:
    """A description of a width: the whole chart's, or that of each panel where several stand below each other."""
    found = dict(spec)
    narrow = width < _NARROW
    if "vconcat" in found:
        found["vconcat"] = [sized(part, width - _LABELS, whole=False) for part in found["vconcat"]]
    else:
        found |= {"width": width} | ({"autosize": {"type": "fit-x", "contains": "padding"}} if whole else {})
    return _with_legends_in_columns(found) if narrow else found


def _with_legends_in_columns(value: Any) -> Any:
    """Every legend with one or two names in a row."""
    if isinstance(value, list):
        return [_with_legends_in_columns(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {name: _with_legends_in_columns(part) for name, part in value.items() if name != "data"}
    for name in ("color", "shape", "strokeDash"):
        channel = found.get(name)
        if isinstance(channel, dict) and "field" in channel and channel.get("legend", {}) is not None:
            columns = 1 if "yOffset" in found else 2  # names of rows leave little room
            found[name] = {**channel, "legend": {**channel.get("legend", {}), "columns": columns}}
    return found | ({"data": value["data"]} if "data" in value else {})


def in_the_dark(svg: str) -> str:
    """An SVG with the colours of dark pages."""
    for light, dark in DARK.items():
        svg = svg.replace(light, dark)
    return svg


def _vl_convert() -> ModuleType:
    """The library that draws, loaded when something is drawn."""
    try:
        import vl_convert
    except ImportError:
        raise MachineError("pictures need vl-convert-python; run pip install 'fastglt[report]'") from None
    return vl_convert
