"""Settings that were published for a graph and a backbone: data, not code."""

from fastglt.methods.settings.defaults import with_defaults
from fastglt.methods.settings.graphs import name_of
from fastglt.methods.settings.networks import network_for
from fastglt.methods.settings.paper import budget_for
from fastglt.methods.settings.published import options_for

__all__ = ["budget_for", "name_of", "network_for", "options_for", "with_defaults"]
