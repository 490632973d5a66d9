"""How results are written for people: tables, per cent, points."""
