"""Finished runs as pages and figures: what was found, in pictures and tables that need no network."""

from fastglt.pages.material import Material, gather
from fastglt.pages.page import report_page

__all__ = ["Material", "gather", "report_page"]
