"""Where the command begins."""

import subprocess
import sys

PRESSED = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "fastglt.cli.commands":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
sys.argv = ["fastglt", "--version"]
from fastglt.__main__ import (main)
main()
"""


def test_ctrl_c_while_modules_are_imported_leaves_no_traceback() -> None:
    heeding = f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{PRESSED}"
    done = subprocess.run([sys.executable, "-c", heeding], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "error: interrupted\n", "")


def test_a_command_that_is_to_ignore_it_does() -> None:
    ignoring = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{PRESSED}"
    done = subprocess.run([sys.executable, "-c", ignoring], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("fastglt ")
