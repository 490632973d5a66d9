"""What several commands share: groups of options, progress, tables."""
