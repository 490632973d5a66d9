"""Requests that schemathesis makes up from the service's own description: never a 5xx, always as described."""

import re
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx

from fastglt.serve import Limits, make_app

from .servers import served, small_predictor

# What fits the description may still be refused: that an edge has a new node, no schema can say.
OPTIONS = "--phases coverage,fuzzing --max-examples 50 --seed 1 --exclude-checks positive_data_acceptance"
LIMITS = Limits(max_nodes=5, max_new_nodes=2, max_new_edges=3, max_body=2**16)


def test_made_up_requests_are_answered_as_described(tmp_path: Path) -> None:
    with served(make_app(small_predictor(), limits=LIMITS)) as base:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{base}/openapi.json", *OPTIONS.split()]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        report = httpx.get(f"{base}/metrics").text
    found = re.findall(r'requests_total\{path="/predict",status="(\d+)"\} (\d+)', report)
    statuses = {int(status): int(count) for status, count in found}
    assert max(statuses) < 500
    assert statuses[200] >= 10  # some of them are questions that reach the predictor
    assert statuses[422] >= 10
