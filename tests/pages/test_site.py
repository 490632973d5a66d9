"""The documentation is built with warnings as errors, and opened where a browser is at hand."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.axe import script
from tests.pages.browser import browser, executable

DOCS = Path(__file__).parent.parent.parent / "docs"
LOOKS = {
    "index": (1200, 900, False),
    "report": (390, 844, True),
    "paper": (390, 844, False),
    "api": (1200, 900, True),
}
THEMES_OWN = ("landmark-", "region")  # rules that the theme, which is not ours, breaks


def test_the_site_is_built_without_a_warning_and_opens_alone(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    for needed in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(needed)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--quiet", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "find_ticket" in (tmp_path / "api.html").read_text()
    if executable() is None:
        pytest.skip("built; no Chromium is at hand to open it")
    axe = script(Path(pytestconfig.cache.mkdir("axe")))
    with browser() as chromium:
        for page, (width, height, dark) in LOOKS.items():
            chromium.look(width=width, height=height, dark=dark)
            chromium.open((tmp_path / f"{page}.html").as_uri())
            assert chromium.complaints == []
            assert all(asked.startswith(tmp_path.as_uri()) for asked in chromium.requests)
            found = [] if axe is None else chromium.violations(axe)
            assert [one for one in found if not one.startswith(THEMES_OWN)] == [], page
