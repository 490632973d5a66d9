"""What a metric is: how it is computed, and what it is called in files and in tables."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.system.seeds import own_randomness


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A score from a network's outputs and the labels they should have. More is better, and 1 is the best.

    `compute` takes a row of outputs for each label; it gives NaN where the labels allow no score.
    """

    name: str  # in files, JSON and options
    title: str  # in tables
    compute: Callable[[Tensor, Tensor], float]


def accuracy(outputs: Tensor, labels: Tensor) -> float:
    """The share of nodes whose largest output is that of their class."""
    return float((outputs.argmax(-1) == labels).double().mean())


def macro_f1(outputs: Tensor, labels: Tensor) -> float:
    """The mean over classes of F1, the harmonic mean of precision and recall.

    As scikit-learn's, over the classes that are there or predicted.
    """
    predicted, classes = outputs.argmax(-1), outputs.shape[-1]
    right, said, there = (
        found.bincount(minlength=classes).double() for found in (labels[predicted == labels], predicted, labels)
    )
    either = said + there
    return float((2 * right[either > 0] / either[either > 0]).mean())


def roc_auc(outputs: Tensor, labels: Tensor) -> float:
    """The area under the ROC curve; NaN where all nodes are of one class.

    Of two classes that of class 1, of more the mean over those that are there, each against all others.
    """
    if labels.numel() == 0 or bool((labels == labels[0]).all()):
        return float("nan")
    with own_randomness(None):  # its import draws from Python's random numbers
        from sklearn.metrics import roc_auc_score

    if outputs.shape[1] > 2:
        return _one_against_all(outputs.double().softmax(-1).cpu(), labels.cpu())
    margin = (outputs[:, 1] - outputs[:, 0]).cpu().numpy()
    return float(roc_auc_score(labels.cpu().numpy(), margin))


def _one_against_all(probabilities: Tensor, labels: Tensor) -> float:
    """The mean area of the classes that are there, by the ranks of their probabilities; equal ones share a rank."""
    from scipy.stats import rankdata

    there, own = torch.unique(labels, return_inverse=True)
    ranks = torch.from_numpy(rankdata(probabilities[:, there].numpy(), axis=0))
    members = own.bincount().double()
    sums = torch.zeros_like(members).scatter_add_(0, own, ranks.gather(1, own.unsqueeze(1)).squeeze(1))
    return float(_area(sums, members, labels.numel() - members).mean())


def mean_roc_auc(outputs: Tensor, labels: Tensor) -> float:
    """The mean over labels, each a column of 0, 1 and NaN, of the area under its ROC curve, as OGB has it.

    Labels that all or none of the nodes have are left out; a node whose label is NaN does not count for it. An
    output that is no number ranks as 0. NaN where no label is left.
    """
    left = both_there(labels)
    scores, labels = outputs[:, left].nan_to_num().T.double().cpu(), labels[:, left].T.cpu()
    if not len(labels):
        return float("nan")
    positive, known = labels == 1, ~labels.isnan()
    scores = torch.where(known, scores, torch.inf)  # behind all others, where they change no rank
    ranks, order = _sorted_ranks(scores)
    sums = (ranks * positive.gather(1, order)).sum(1)
    members = positive.sum(1).double()
    return float(_area(sums, members, known.sum(1) - members).mean())


def both_there(labels: Tensor) -> Tensor:
    """Which labels, a column each, some rows have and some have not."""
    return (labels == 1).any(0) & (labels == 0).any(0)


def _area(sums: Tensor, members: Tensor, others: Tensor) -> Tensor:
    """The area under a ROC curve from the sum of the members' ranks, which begin with 1."""
    return (sums - members * (members + 1) / 2) / (members * others)


def _sorted_ranks(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The ranks of each row's numbers, ascending, and where they stand; equal ones share the mean of theirs."""
    ordered, order = scores.sort(1)
    places = torch.arange(1, scores.shape[1] + 1).expand(scores.shape)
    differs = torch.ones_like(ordered, dtype=torch.bool)
    differs[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = torch.where(differs, places, 0).cummax(1).values
    ends = torch.ones_like(differs)
    ends[:, :-1] = differs[:, 1:]
    last = torch.where(ends, places, scores.shape[1]).flip(1).cummin(1).values.flip(1)
    return (first + last).double() / 2, order


ACCURACY = Metric(name="accuracy", title="accuracy", compute=accuracy)
MACRO_F1 = Metric(name="macro_f1", title="macro-F1", compute=macro_f1)
ROC_AUC = Metric(name="roc_auc", title="ROC-AUC", compute=roc_auc)
MEAN_ROC_AUC = Metric(name=ROC_AUC.name, title=ROC_AUC.title, compute=mean_roc_auc)  # of many labels

TITLES = {
    metric.name: metric.title for metric in (ACCURACY, MACRO_F1, ROC_AUC)
}  # those of registered tasks come on top


def title_of(metric: str | None) -> str:
    """What a metric is called in tables; one that nobody has registered here by its own name.

    >>> title_of("macro_f1"), title_of("roc_auc"), title_of("mape"), title_of(None)
    ('macro-F1', 'ROC-AUC', 'mape', 'score')
    """
    return "score" if metric is None else TITLES.get(metric, metric)
