"""The paper's tables and figures from one call, its numbers beside ours."""

from fastglt.studies.paper.items import ITEMS, Item
from fastglt.studies.paper.reproduction import Reproduction
from fastglt.studies.paper.scope import Scope

__all__ = ["ITEMS", "Item", "Reproduction", "Scope"]
