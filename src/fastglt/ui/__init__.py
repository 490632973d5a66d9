"""Finished runs as a page that is served to this machine alone, with the progress of those that go on."""

from fastglt.ui.app import make_app
from fastglt.ui.live import Live

__all__ = ["Live", "make_app"]
