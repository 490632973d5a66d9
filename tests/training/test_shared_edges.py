from pathlib import Path

from fastglt.system.container import to_bytes
from fastglt.training.checkpoint import pack
from tests.processes import run_ranks
from tests.training.shared_edges import trained


def test_each_process_has_its_own_edges_and_the_first_packs_what_one_would(tmp_path: Path) -> None:
    place = tmp_path / "packed.safetensors"
    run_ranks(3, "-m", "tests.training.shared_edges", place)
    assert place.read_bytes() == to_bytes(pack(trained())[0], {})
