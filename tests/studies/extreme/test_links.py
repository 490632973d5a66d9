"""An extreme sparsity of links is confirmed on test links, not on test nodes."""

from pathlib import Path

import pytest
import torch

from fastglt import InputError
from fastglt.studies.extreme.study import _require_test_nodes
from fastglt.studies.shared import Study
from tests.link_folders import NEGATIVES, write_collab, write_split


def test_links_to_test_on_are_enough(tmp_path: Path) -> None:
    folder = write_collab(tmp_path / "collab")
    _require_test_nodes(Study(command="extreme", dataset=folder, methods="random"))
    _require_test_nodes(Study(command="extreme", dataset="digits", methods="random", task="link"))
    write_split(folder, test={"edge": torch.zeros(0, 2, dtype=torch.int64), "edge_neg": NEGATIVES})
    with pytest.raises(InputError, match="needs test nodes to be confirmed on"):
        _require_test_nodes(Study(command="extreme", dataset=folder, methods="random"))
