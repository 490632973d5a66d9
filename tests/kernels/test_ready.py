"""numba is made ready without SciPy's linear algebra, and still has it for those who compile some."""

import json
import subprocess
import sys

LOOK = """
import json, sys
from fastglt.kernels import _numba
import numba, numpy as np
before = "scipy.linalg" in sys.modules
product = numba.njit(lambda a, b: a @ b)(np.eye(2), np.full((2, 2), 3.0))
known = numba.np.arraymath._HAVE_BLAS
after = "scipy.linalg.cython_blas" in sys.modules
print(json.dumps([before, product.tolist(), int(numba.config.OPT), known, after]))
"""


def test_linear_algebra_waits_for_somebody_who_compiles_it() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    before, product, level, known, after = json.loads(done.stdout)
    assert (before, known, after) == (False, True, True)
    assert product == [[3, 3], [3, 3]]
    assert level == 3  # what is compiled from now on is optimised
