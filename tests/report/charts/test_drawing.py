import numpy as np

from fastglt.report.charts.drawing import Drawn, layout, sample

RING = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])


def test_a_small_graph_is_drawn_whole() -> None:
    kept = np.array([True, True, False, True, True, True])
    picture = Drawn(edges=RING, kept=kept, nodes=6, groups=list("aabbcc")).picture(title="ring")
    assert picture.text == "5 kept and 1 pruned edges between 6 nodes."
    pruned, stays, nodes = picture.spec["layer"]
    assert [layer["name"] for layer in (pruned, stays, nodes)] == ["pruned", "kept", "nodes"]
    assert len(stays["data"]["values"]) == 5
    places = [(node["x"], node["y"]) for node in nodes["data"]["values"]]
    (gone,) = pruned["data"]["values"]
    assert ((gone["x"], gone["y"]), (gone["x2"], gone["y2"])) == (places[2], places[3])
    assert nodes["data"]["values"][2]["about"] == "node 2, b: 2 edges before, 1 after"
    assert 'class="mark-rule role-mark pruned_marks"' in picture.svg()


def test_of_a_large_graph_a_part_is_drawn_and_told() -> None:
    edges = np.stack([np.arange(999), np.arange(1, 1000)])
    picture = Drawn(edges=edges, kept=np.ones(999, dtype=bool), nodes=1000).picture(title="path", most=40)
    assert picture.text.endswith("A part of the graph: 40 of 1,000 nodes.")
    assert len(picture.spec["layer"][2]["data"]["values"]) == 40


def test_a_sample_is_sorted_distinct_and_the_same_again() -> None:
    edges = np.random.default_rng(0).integers(0, 500, (2, 1500))
    first, again = (sample(edges, 500, most=60, seed=3) for _ in range(2))
    assert first.tolist() == again.tolist() == sorted(set(first.tolist()))
    assert len(first) == 60


def test_a_graph_without_edges_has_a_sample_too() -> None:
    assert len(sample(np.zeros((2, 0), dtype=np.int64), 500, most=60, seed=0)) == 60


def test_linked_nodes_come_to_lie_near_each_other() -> None:
    pairs = np.array([[0, 2, 4, 6], [1, 3, 5, 7]])
    place = layout(pairs, 8, seed=0)
    assert ((place >= 0) & (place <= 1)).all()
    distance = np.sqrt(((place[:, None] - place[None]) ** 2).sum(-1))
    linked = distance[pairs[0], pairs[1]]
    assert linked.max() < np.median(distance[np.triu_indices(8, 1)])
