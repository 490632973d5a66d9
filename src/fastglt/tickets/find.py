"""From a model and a graph to a ticket: search, then train in isolation, then (by choice) the dense twin.

A distilled ticket has a teacher before all that, the dense network, and a second twin that was taught as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fastglt.errors import check_seed
from fastglt.graphs.columns import is_symmetric
from fastglt.graphs.graph import Graph
from fastglt.masks import Masks
from fastglt.methods import Method, Targets, lookup, make
from fastglt.methods.settings import name_of, network_for, with_defaults
from fastglt.methods.settings.defaults import SomeBudget
from fastglt.methods.teaching import Distill, with_teacher
from fastglt.models.base import Network, state_of
from fastglt.report.bars import shown
from fastglt.system.modes import ordinary_mode
from fastglt.system.provenance import versions
from fastglt.tasks import Scores, Task, make_task, task_settings
from fastglt.tasks.inductive import Inductive, hide
from fastglt.tickets.networks import as_network, warn_of_unused_weights
from fastglt.tickets.new_nodes import NewNodes, check_network
from fastglt.tickets.phases import (
    DENSE,
    Journal,
    PhaseResult,
    Progress,
    opponents,
    run_phase,
    score_state,
    teacher_of_search,
    train_fixed,
    train_opponent,
    train_teacher,
)
from fastglt.tickets.ticket import Ticket, state_hash
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, kw_only=True)
class Found:
    """A ticket and the trainings behind it: search and, where asked for, isolated and dense.

    Of a distilled ticket also teacher, which is the dense one's training too, and dense_distilled.
    """

    ticket: Ticket
    phases: Mapping[str, PhaseResult]
    rounds: tuple[Ticket, ...] = ()  # of an iterative method: a ticket for each round, the last one included


@ordinary_mode()
def find_ticket(
    model: nn.Module | str,
    data: "Data",
    *,
    graph_sparsity: float = 0.2,
    weight_sparsity: float = 0.9,
    structure: str = "weights",
    method: str = "fastglt",
    seed: int = 0,
    budget: SomeBudget = None,
    hidden: int | None = None,
    model_options: Mapping[str, Any] | None = None,
    task: str | type[Task] | None = None,
    task_options: Mapping[str, Any] | None = None,
    metric: str | None = None,
    directed: bool | None = None,
    isolated: bool = True,
    prunable: list[str] | None = None,
    distill: Distill = None,
    device: str | torch.device = "cpu",
    progress: Progress | bool | None = None,
    inductive: float | None = None,
    split_seed: int = 0,
    **options: Any,
) -> Ticket:
    """Find a graph lottery ticket.

    >>> import fastglt
    >>> ticket = fastglt.find_ticket("gcn", data, graph_sparsity=0.2, weight_sparsity=0.9)  # doctest: +SKIP
    >>> ticket.scores["search_test"], ticket.scores["isolated_test"]  # doctest: +SKIP

    The model and the data are left as they are. Without a word about them, budget and options are those of
    `fastglt find`: on the paper's graphs (Cora, CiteSeer, PubMed), with one of fastglt's backbones, the paper's
    budget and the options that the method was published with.

    PyTorch's random numbers belong to the whole process: of several threads that call this, one searches and the
    others wait, and none may draw such numbers meanwhile. Run several searches at a time in processes, started anew
    (multiprocessing's "spawn" or "forkserver"): one that was forked from a process that has computed is refused.

    Args:
        model: Any PyG model, whose current weights are Θ0; or one of fastglt's backbones, as it is or by name
            ("gcn", "gin", "gat", "resgcn", ``module:Class`` of your own).
        data: A PyG `Data` with x, edge_index, y and the masks of a split: one graph, nodes of one kind.
        graph_sparsity: The share of edges to remove.
        weight_sparsity: The share of weights to remove.
        structure: What goes: single weights, or whole hidden units ("units"), which makes a smaller dense network.
        method: A name from `fastglt methods`, or ``module:Class`` of your own.
        seed: Random seed (initial weights of a backbone that is named, dropout).
        budget: A `Budget`, or what differs from the default, such as ``{"denoise_epochs": 100}``.
        hidden: Width of the hidden layers of a backbone that is named (default: as published, or 512).
        model_options: Other options of such a backbone, such as ``{"heads": 4}``.
        task: What is predicted: a name ("node-classification", "multi-label", "link"), or a class that extends
            `Task` (default: what data.y is for, classes or, where it has several columns, many labels a node).
        task_options: The task's own options, such as ``{"decoding": "dot"}``.
        metric: How it is scored (default: the task's first).
        directed: Whether each direction of an edge is pruned on its own (default: if the data is directed).
        isolated: Whether the ticket is retrained from Θ0 afterwards, which doubles the time.
        prunable: The names of the parameters to prune, of a PyG model (default: every weight matrix).
        distill: A teacher: the dense network is trained first, and what it says about all nodes teaches the search
            and the retrained ticket (default: none). True for the usual one; ``{"weight": 10, "temperature": 2}``
            and ``labels``, ``lr``, ``search``, ``nodes`` to change it; a number is its weight, all else as in 0.1.
        device: cpu, cuda, ….
        progress: True for a bar, in terminals and notebooks; or what is called after each epoch with the phase, the
            `Training` and the number of epochs.
        inductive: The share of nodes to hide, with their edges, from teacher, search and training; in the end the
            ticket is scored on those of them that are test nodes, as `isolated_new` (all their edges) and
            `isolated_new_kept` (those that the ticket's rule keeps) in its scores.
        split_seed: Seed by which these nodes are drawn.
        options: The method's own options, such as ``swap_fraction=0.2``.
    """
    targets = Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity, structure=structure)
    lookup(method)  # a mistake is better told before the data is read
    whole = make_task(task, data, metric=metric, directed=directed, options=task_options).to(device)
    unseen = None if inductive is None else hide(whole, inductive, seed=split_seed)
    prepared = whole if unseen is None else unseen.seen
    soft_edges, dataset = graph_sparsity > 0, published_name(whole, data)
    of_model: dict[str, Any] = {"options": model_options, "prunable": prunable}
    hidden, published = network_for(dataset, model if isinstance(model, str) else "", hidden=hidden)
    if published:
        of_model["options"] = {**published, **(model_options or {})}
    network = as_network(model, prepared, hidden=hidden, seed=seed, soft_edges=soft_edges, **of_model)
    names = (method, dataset, network.spec["name"])
    budget, options = with_defaults(*names, budget=budget, options=options)
    chosen = make(method, targets=targets, budget=with_teacher(budget, distill), **options)
    with shown(progress) as after_epoch:
        shared: dict[str, Any] = {"seed": seed, "isolated": isolated, "inductive": unseen}
        found = find(network, prepared, chosen, dense=False, progress=after_epoch, **shared)
    return found.ticket.with_config(**({} if directed is None else {"directed": directed}))


def published_name(task: Task, data: "Data") -> str:
    """The name under which a task's graph has published settings: of all edges, also those to be predicted."""
    graph = task.graph
    if task.of_pairs:
        graph = Graph.from_edge_index(data.edge_index, graph.num_nodes, directed=graph.directed)
    return name_of(graph)


def find(
    network: Network,
    task: Task,
    method: Method,
    *,
    seed: int,
    isolated: bool = True,
    dense: bool = True,
    journal: Journal | None = None,
    progress: Progress | None = None,
    inductive: Inductive | None = None,
) -> Found:
    """Search with a method; train the ticket in isolation and the dense network from the same Θ0.

    If the budget has a weight for it, the dense network comes first and teaches the others, and one dense network
    more is taught as the ticket is. With hidden nodes, of which `task` is the seen part, every phase is scored on
    them as well.
    """
    check_seed(seed)
    check_targets(network, task, method)
    new_nodes = None
    if inductive is not None:
        check_network(network, inductive)
        new_nodes = NewNodes(inductive=inductive, network=network, method=method, seed=seed)
    journal, budget, teacher = journal or Journal(), method.budget, None
    given: dict[str, Any] = {"seed": seed, "journal": journal, "progress": progress}
    phases: dict[str, PhaseResult] = {}
    if budget.distill > 0:
        phases["teacher"], teacher = train_teacher(network, task, budget, **given)
    start = partial(
        Training,
        network,
        task,
        method.recipe,
        seed=seed,
        teacher=teacher_of_search(teacher, budget),
        units=method.units(network, task),
    )
    search = phases["search"] = run_phase("search", start, method, journal, progress)
    if isolated:
        fixed: dict[str, Any] = {"masks": search.best.masks, "teacher": teacher}
        phases["isolated"] = train_fixed("isolated", network, task, budget, **fixed, **given)
    for name in opponents(budget) if dense else ():
        known = phases.get("teacher") if name == DENSE else None
        phases[name] = known or train_opponent(name, network, task, budget, teacher=teacher, **given)
    others = {name: result.best.scores for name, result in phases.items() if name != "search"}
    seconds = {name: result.seconds for name, result in phases.items()}
    ticket_of = partial(make_ticket, network, task, method, seed)
    ticket = replace(ticket_of(search.best, others), history=search.history, seconds=seconds)
    if inductive is not None and new_nodes is not None:
        ticket = ticket.with_config(inductive=inductive.settings)
        settled = replace(new_nodes, method=method.decided_by(search.best.findings))
        ticket = replace(ticket, scores={**ticket.scores, **scores_on_new(settled, phases)})
    return Found(
        ticket=ticket,
        phases=phases,
        rounds=tuple(ticket_of(best, {}, round=best.round) for best in search.rounds),
    )


def scores_on_new(new_nodes: NewNodes, phases: Mapping[str, PhaseResult]) -> dict[str, float]:
    """What every phase but the teacher's scores on hidden nodes, as `isolated_new` and so on."""
    found: dict[str, float] = {}
    for phase in (name for name in phases if name != "teacher"):
        best = phases[phase].best
        masks = best.masks if phase in ("search", "isolated") else None
        scores = new_nodes.scores(best.state, masks, best.soft_edge_mask)
        found |= {f"{phase}_{name}": value for name, value in scores.items()}
    return found


def check_targets(network: Network, task: Task, method: Method) -> None:
    """Refuse targets that leave nothing, and a network that is not for this method, before anything is trained."""
    method.check(network)
    method.check_parts()
    method.budget.recipe.by_parts(task)
    task.require(*method.needs)
    method.units(network, task)
    method.targets.check(task, sum(shape.numel() for shape in network.weight_shapes.values()))
    warn_of_unused_weights(network, task.graph)


def make_ticket(
    network: Network,
    task: Task,
    method: Method,
    seed: int,
    best: Snapshot,
    others: Mapping[str, Scores],
    **config: Any,
) -> Ticket:
    """The ticket of a best epoch, with the scores of other phases; `config` says more about where it comes from."""
    initial = {name: value.detach().cpu().clone() for name, value in state_of(network).items()}
    initial_hash, again = state_hash(initial), network.rebuilt()
    recipe = again is not None and state_hash(state_of(again)) == initial_hash
    unweighted = score_state(network, task, method.budget, best.state, seed=seed, masks=best.masks)
    runs = {"search": best.scores, "search_unweighted": unweighted, **others}
    weights = {network.public_name(name): mask for name, mask in best.masks.weights.items()}
    kept, valued = best.masks.edges.kept, network.reads_edge_values
    fields = {name: task.graph.field_digest(name) for name in network.read_fields(task.graph)}
    return Ticket(
        masks=Masks(edges=best.masks.edges, weights=weights),
        weights={name: value.cpu() for name, value in state_of(network, best.state).items()},
        soft_edge_mask=None if best.soft_edge_mask is None else best.soft_edge_mask.cpu()[kept],
        model=network.spec,
        config={
            "method": method.name,
            "options": method.options,
            "targets": method.targets.settings,
            "budget": method.budget.settings,
            "metric": task.metric,
            **task_settings(task),
            **({"edge_values": task.graph.values_fingerprint} if valued else {}),
            **({"fields": fields} if fields else {}),
            **({"directed": True} if _must_be_told_directed(task.graph) else {}),
            **({"findings": best.findings} if best.findings else {}),
            **config,
        },
        seed=seed,
        scores={f"{run}_{name}": getattr(scores, name) for run, scores in runs.items() for name in ("val", "test")},
        graph_fingerprint=task.graph.fingerprint,
        feature_fingerprint=task.x.fingerprint,
        initial_hash=initial_hash,
        initial_from="recipe" if recipe else "file",
        versions=versions(),
        load_initial=partial(dict, initial),
    )


def _must_be_told_directed(graph: Graph) -> bool:
    """Whether nobody sees from its edges alone that a graph is directed: each of them goes both ways."""
    if not graph.directed or graph.edge_attr is not None:
        return False
    outgoing, incoming = (ends.bincount(minlength=graph.num_nodes) for ends in graph.edges)
    return torch.equal(outgoing, incoming) and is_symmetric(graph.edges, graph.num_nodes)
