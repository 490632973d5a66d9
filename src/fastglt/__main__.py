"""`python -m fastglt`."""

from fastglt.cli import main

main()
