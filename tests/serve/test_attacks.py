"""The service under attack: short versions of benchmarks/serve_attacks.py, against a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serve_attacks.py"


def test_health_is_told_and_memory_is_bounded_under_attack() -> None:
    command = [sys.executable, str(SCRIPT), "--first", "3", "--share", "0.2", "--seconds", "1", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    found = json.loads(result.stdout)
    assert len(found) == 3
    for one in found:
        assert one["healthz"] < 1, one
        assert one["memory"] < 256, one
        assert one["honest"][0] > 0, one
    assert result.returncode == 0
    assert len(result.stderr.splitlines()) < 20  # no client fills the log
