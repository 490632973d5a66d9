"""Run commands as if each had a process of its own: what one imports and registers, the next knows nothing of."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from fastglt.methods import METHODS
from fastglt.models import BACKBONES
from fastglt.system.plugins import is_ours
from fastglt.tasks import TASKS
from tests.cli.conftest import Cli, Result, cli, store

__all__ = ["cli", "store"]  # fixtures
collect_ignore = ["sage.py"]  # to look for examples in it would be to register it

Commands = Callable[..., Result]


@pytest.fixture(name="commands")
def make_commands(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Commands in an empty current folder, where no class from outside is known."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Result:
        with ExitStack() as stack:
            for registry in (BACKBONES, METHODS, TASKS):
                ours = {name: kind for name, kind in registry.items() if is_ours(kind)}
                stack.enter_context(patch.dict(registry, ours, clear=True))
            stack.enter_context(patch.object(sys, "path", [*sys.path]))
            result = cli(*words)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[name]
        return result

    return run
