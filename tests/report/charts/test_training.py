from typing import Any

from fastglt.report.charts.training import events, training_curves


def line(epoch: int, **changed: Any) -> dict[str, Any]:
    plain = dict.fromkeys(("edges_dropped", "edges_grown", "weights_dropped", "weights_grown"), 0)
    scores = {"val": 0.7, "test": 0.6, "graph_sparsity": 0.0, "weight_sparsity": 0.0}
    return {"epoch": epoch, "stage": "search", "loss": 1.0, "val_loss": 1.0, **plain, **scores, **changed}


HISTORY = [
    line(1, val=float("nan")),
    line(2, edges_dropped=10, weights_dropped=90, graph_sparsity=0.1, weight_sparsity=0.9),
    line(3, weights_dropped=4, weights_grown=4, graph_sparsity=0.1, weight_sparsity=0.9),
    line(4, edges_grown=2, graph_sparsity=0.08, weight_sparsity=0.9),
]


def test_cuts_swaps_and_regrowths_are_told_apart() -> None:
    found = [(mark["epoch"], mark["element"], mark["what"]) for mark in events(HISTORY)]
    assert found == [(2, "edges", "cut"), (2, "weights", "cut"), (3, "weights", "swap"), (4, "edges", "regrowth")]
    assert events(HISTORY)[1]["about"] == "epoch 2: 90 weights dropped, 0 regrown"


def test_the_search_is_told_in_words_and_drawn() -> None:
    picture = training_curves(HISTORY, metric="accuracy", title="a search")
    assert "1 cut and 1 swap; at the end 92.0 % of edges and 10.0 % of weights are kept" in picture.text
    scores, marks, kept = picture.spec["vconcat"]
    assert len(scores["layer"][0]["data"]["values"]) == 7  # one of eight is not a number
    assert len(marks["data"]["values"]) == 4
    assert [row["kept"] for row in kept["data"]["values"] if row["of"] == "weights"] == [100.0, 10.0, 10.0, 10.0]
    assert "epoch 3: 4 weights dropped, 4 regrown" in picture.svg()


def test_a_search_without_cuts_has_no_marks() -> None:
    assert len(training_curves(HISTORY[:1], metric="accuracy", title="dense").spec["vconcat"]) == 2
