"""Graph lottery tickets, found fast."""
import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
__version__ = "0.1.0"
