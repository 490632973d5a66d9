"""Damaged and hostile files, many of them: whatever is in one, it is refused in a line or read as it was written.

`pytest tests/fuzz` tries some thousand; `make fuzz` tries `FASTGLT_FUZZ` of them and prints what became of each.
"""
