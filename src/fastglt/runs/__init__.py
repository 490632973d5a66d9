"""Runs from names and numbers: one or many, kept in folders and in a results store, executed by an engine."""
