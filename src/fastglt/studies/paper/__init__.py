"""The paper's tables and figures from one call, its numbers beside ours."""

from fastglt.studies.paper.costs import Cost, cost_of, forecast_of, recorded_rows
from fastglt.studies.paper.items import ITEMS, Item
from fastglt.studies.paper.reproduction import Reproduction
from fastglt.studies.paper.scope import Scope

__all__ = ["ITEMS", "Cost", "Item", "Reproduction", "Scope", "cost_of", "forecast_of", "recorded_rows"]
