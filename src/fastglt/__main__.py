"""`python -m fastglt`: Python puts the current folder first on its path, where a file could pass for any module."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]

from fastglt.cli import main

main()
