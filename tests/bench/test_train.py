"""The row of `fastglt bench train`."""

import pytest

from fastglt.bench.train import measure, our_stages
from fastglt.methods.parts.schedules import intermediate_sparsity

from .conftest import PEAKS, tiny_experiment


@pytest.mark.parametrize("model", ["gcn", "gin", "gat"])
def test_the_mean_epoch_of_a_search_meets_the_faster_form_of_pyg(no_processes: list[str], model: str) -> None:
    experiment = tiny_experiment(model=model)
    row, budget = measure(experiment, repeats=2, note=no_processes.append), experiment.budget
    whole = budget.oneshot_epochs * row["soft_ms"] + budget.denoise_epochs * row["hard_ms"]
    assert row["ours_ms"] == pytest.approx(whole / (budget.oneshot_epochs + budget.denoise_epochs))
    assert min(row["soft_ms"], row["hard_ms"]) > 0
    assert row["pyg_ms"] == min(row["pyg_edge_index_ms"], row["pyg_csr_ms"]) > 0
    assert row["ratio_to_pyg"] == pytest.approx(row["pyg_ms"] / row["ours_ms"])
    assert row["pyg_ms"] == row[f"pyg_{row['pyg_faster']}_ms"]
    assert row["dense_ms"] > 0
    assert no_processes[:2] == ["memory", "warming up soft"], "while this process has taken little itself"
    assert row["peak_mb_pyg"] == PEAKS[f"peak_mb_pyg_{row['pyg_faster']}"]
    assert row.items() >= {**PEAKS, "model": model}.items()


def test_the_stages_are_those_of_a_search() -> None:
    stages = our_stages(tiny_experiment().prepare())
    assert [run.training.stage for run in stages.values()] == ["oneshot", "denoise", "train"]
    for _ in range(20):  # more than the budget
        for run in stages.values():
            run.epoch()
    soft, hard, dense = (stages[name].training for name in ("soft", "hard", "dense"))
    assert soft.stage == "oneshot"
    assert soft.soft_edge_mask is not None
    assert set(soft.soft_weight_masks) == set(soft.weights)
    assert soft.masks.weight_sparsity == soft.masks.graph_sparsity == 0
    assert hard.stage == "denoise"
    assert hard.soft_edge_mask is not None
    assert set(hard.gradient_sum) == set(hard.weights)
    assert hard.masks.weight_sparsity == pytest.approx(intermediate_sparsity(0.9), abs=0.01)
    assert hard.masks.graph_sparsity == pytest.approx(intermediate_sparsity(0.2), abs=0.01)
    assert (dense.soft_edge_mask, dense.soft_weight_masks, dense.masks.weight_sparsity) == (None, {}, 0)
