"""Which runs a comparison consists of, and in which folders."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastglt import InputError
from fastglt.methods import Targets
from fastglt.runs.experiment import Experiment
from fastglt.runs.run_folder import settings_digest
from fastglt.runs.store import key_of

from .examples import experiment, runs_of


def test_the_dense_twin_of_a_seed_is_shared_and_comes_first(tmp_path: Path) -> None:
    experiments = [experiment(method, seed) for seed in (0, 1) for method in ("random", "fastglt")]
    runs = runs_of(tmp_path, *experiments)
    assert [run.name for run in runs] == [
        "dense seed 0",
        "random g20 w50 seed 0",
        "fastglt g20 w50 seed 0",
        "dense seed 1",
        "random g20 w50 seed 1",
        "fastglt g20 w50 seed 1",
    ]
    twins = [{"dense": runs[place].folder} for place in (0, 3)]
    assert [run.twins for run in runs] == [{}, *2 * twins[:1], {}, *2 * twins[1:]]
    assert [run.is_dense for run in runs] == [True, False, False] * 2


def test_a_folder_is_named_after_the_run_and_its_settings(tmp_path: Path) -> None:
    dense, ticket = runs_of(tmp_path, experiment())
    assert ticket.folder == tmp_path / f"random-g20-w50-s0-{settings_digest(ticket.settings)}"
    assert dense.folder == tmp_path / f"dense-s0-{settings_digest(dense.settings)}"
    assert not list(tmp_path.iterdir()), "planning touches nothing"


def test_the_twin_does_not_depend_on_method_and_targets(tmp_path: Path) -> None:
    other = experiment("fastglt", targets=Targets(graph_sparsity=0.0, weight_sparsity=0.9), options={"ramp": 1.0})
    one, two = runs_of(tmp_path, experiment()), runs_of(tmp_path, other)
    assert one[0] == dataclasses.replace(two[0], experiment=one[0].experiment)


@pytest.mark.parametrize("change", ["lr", "hidden", "threads", "split_seed"])
def test_what_changes_the_training_changes_both_folders(tmp_path: Path, change: str) -> None:
    first = experiment()
    budget = dataclasses.replace(first.budget, lr=0.02)
    choices: dict[str, dict[str, Any]] = {
        "lr": {"budget": budget},
        "hidden": {"hidden": 9},
        "threads": {"threads": 2},
    }
    other = experiment(**choices.get(change, {"split_seed": 1}))
    assert not {run.folder for run in runs_of(tmp_path, first)} & {run.folder for run in runs_of(tmp_path, other)}


def test_runs_of_several_splits_are_those_of_each_split(tmp_path: Path) -> None:
    """The same folders and keys as a series with one split has; only their names tell the splits apart."""
    experiments = [experiment(seed=seed, split_seed=split) for split in (0, 2) for seed in (0, 1)]
    runs = runs_of(tmp_path, *experiments)
    assert [run.name for run in runs][:3] == [
        "dense split 0 seed 0",
        "random g20 w50 split 0 seed 0",
        "dense split 0 seed 1",
    ]
    apart = [*runs_of(tmp_path, *experiments[:2]), *runs_of(tmp_path, *experiments[2:])]
    assert [(run.folder, run.key, run.twins) for run in runs] == [(one.folder, one.key, one.twins) for one in apart]
    assert len({run.key for run in runs}) == 8


def test_a_fixed_split_has_no_second_one(tmp_path: Path) -> None:
    masks = {f"{part}_mask": np.arange(6) // 2 == place for place, part in enumerate(("train", "val", "test"))}
    path = tmp_path / "fixed.npz"
    edges = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    np.savez(path, edge_index=edges, x=np.eye(6), y=np.array([0, 1] * 3), **masks)
    message = r"that of 'fixed.npz' is fixed \(got the same for 0 and 1\); leave split_seeds out"
    with pytest.raises(InputError, match=message):
        runs_of(tmp_path, *(experiment(dataset=str(path), split_seed=split) for split in (0, 1)))


def test_an_option_changes_the_tickets_folder_alone(tmp_path: Path) -> None:
    dense, ticket = runs_of(tmp_path, experiment("fastglt"))
    same_dense, other = runs_of(tmp_path, experiment("fastglt", options={"ramp": 1.0}))
    assert dense.folder == same_dense.folder
    assert ticket.folder != other.folder


def test_a_result_has_the_same_key_whichever_command_made_it(tmp_path: Path) -> None:
    dense, ticket = runs_of(tmp_path, experiment("fastglt"))
    prepared = experiment("fastglt").prepare()
    assert (ticket.key, dense.key) == (key_of(prepared.settings), key_of(prepared.dense_settings))
    assert ticket.settings != prepared.settings  # its folder says that there is no twin in it


def distilled(*arguments: Any, **choices: Any) -> Experiment:
    budget = dataclasses.replace(experiment().budget, distill=2.0)
    return experiment(*arguments, budget=budget, **choices)


def test_distilled_tickets_share_two_twins(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, distilled("random"), distilled("fastglt"))
    assert [run.name for run in runs] == [
        "dense seed 0",
        "dense distilled seed 0",
        "random g20 w50 distilled seed 0",
        "fastglt g20 w50 distilled seed 0",
    ]
    assert [run.is_dense for run in runs] == [True, True, False, False]
    both = {"dense": runs[0].folder, "dense_distilled": runs[1].folder}
    assert [run.twins for run in runs] == [{}, {}, both, both]
    assert runs[1].folder.name == f"dense_distilled-s0-{settings_digest(runs[1].settings)}"
    assert runs[2].folder.name == f"random-g20-w50-distilled-s0-{settings_digest(runs[2].settings)}"


def test_the_plain_twin_of_distilled_tickets_is_that_of_plain_ones(tmp_path: Path) -> None:
    plain, ticket = runs_of(tmp_path, experiment())
    same, taught, other = runs_of(tmp_path, distilled())
    assert (same.key, same.folder) == (plain.key, plain.folder)
    assert len({run.key for run in (plain, ticket, taught, other)}) == 4
    stronger = dataclasses.replace(experiment().budget, distill=3.0)
    assert {taught.key, other.key}.isdisjoint(run.key for run in runs_of(tmp_path, experiment(budget=stronger)))


def test_runs_without_a_teacher_have_the_keys_they_always_had() -> None:
    """Digests from before there were teachers; version, back end and the digest of labels and split apart."""
    prepared = experiment().prepare()
    pinned = {"fastglt": "", "backend": "", "labels_and_split": ""}
    assert settings_digest({**prepared.settings, **pinned}) == "07d018c0"
    assert settings_digest({**prepared.dense_settings, **pinned}) == "f984827b"
    assert key_of({**prepared.settings, **pinned}).startswith("24a764b052b3db61")
    assert key_of({**prepared.dense_settings, **pinned}).startswith("e37a79ca58a188cf")


def test_each_seed_has_its_own_network(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, experiment(seed=0), experiment(seed=3))
    assert [run.settings["model"]["seed"] for run in runs] == [0, 0, 3, 3]


def test_targets_that_leave_nothing_are_refused_before_anything_runs(tmp_path: Path) -> None:
    too_sparse = experiment(targets=Targets(graph_sparsity=0.0, weight_sparsity=0.9999))
    with pytest.raises(InputError, match="weight_sparsity must leave at least one of 152 elements"):
        runs_of(tmp_path, experiment(), too_sparse)
