import pytest

from fastglt.report.charts.theme import DARK, GRID, PALETTE, PAPER, colours


def luminance(colour: str) -> float:
    """As WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", [colour for colour in DARK if colour not in (GRID, PAPER)])
def test_every_colour_can_be_read_on_both_papers(colour: str) -> None:
    assert contrast(colour, PAPER) >= 4.5
    assert contrast(DARK[colour], DARK[PAPER]) >= 4.5


def test_contrast_is_that_of_black_and_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_more_names_than_colours_begin_again() -> None:
    names = [str(number) for number in range(len(PALETTE) + 1)]
    assert colours(names)["range"][-1] == PALETTE[0]
