"""An extreme sparsity of links is confirmed on test links, not on test nodes."""

from pathlib import Path

import pytest
import torch

from fastglt import InputError
from fastglt.studies.shared import Study
from tests.link_folders import NEGATIVES, write_collab, write_split


def test_links_to_test_on_are_enough(tmp_path: Path) -> None:
    folder = write_collab(tmp_path / "collab")
    rule = "it needs test nodes to be confirmed on", "leave it"
    Study(command="extreme", dataset=folder, methods="random").require_test_nodes(*rule)
    Study(command="extreme", dataset="digits", methods="random", task="link").require_test_nodes(*rule)
    write_split(folder, test={"edge": torch.zeros(0, 2, dtype=torch.int64), "edge_neg": NEGATIVES})
    with pytest.raises(InputError, match=r"needs test nodes to be confirmed on \(got none\); leave it"):
        Study(command="extreme", dataset=folder, methods="random").require_test_nodes(*rule)
