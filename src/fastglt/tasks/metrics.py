"""What a metric is: how it is computed, and what it is called in files and in tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fastglt.system.seeds import own_randomness

Numbers = npt.NDArray[Any]


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
    columns = (part[:, left].T.contiguous().cpu().numpy() for part in (outputs.nan_to_num(), labels))
    areas = [_binary_area(scores, have) for scores, have in zip(*columns, strict=True)]
    return sum(areas) / len(areas) if areas else float("nan")


def both_there(labels: Tensor) -> Tensor:
    """Which labels, a column each, some rows have and some have not."""
    return (labels == 1).any(0) & (labels == 0).any(0)


def _area(sums: Any, members: Any, others: Any) -> Any:
    """The area under a ROC curve from the sum of the members' ranks, which begin with 1."""
    return (sums - members * (members + 1) / 2) / (members * others)


def _binary_area(scores: Numbers, labels: Numbers) -> float:
    """The area of one label; equal scores share the mean of their ranks."""
    own, scores = scores[labels == 1], scores[~np.isnan(labels)]
    ordered = np.sort(scores)
    ranks = (np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right") + 1) / 2
    return float(_area(ranks.sum(), len(own), len(scores) - len(own)))


def hits_at(most: int) -> Callable[[Tensor, Tensor], float]:
    """Hits@K as OGB counts it: the share of positives that score above the K-th best negative; a tie is a miss.

    With fewer than K negatives every positive is a hit.

    >>> outputs, labels = torch.tensor([[3.0], [2.0], [1.0], [2.0], [0.0]]), torch.tensor([1, 1, 1, 0, 0])
    >>> hits_at(1)(outputs, labels), hits_at(2)(outputs, labels), hits_at(3)(outputs, labels)
    (0.3333333333333333, 1.0, 1.0)
    """

    def hits(outputs: Tensor, labels: Tensor) -> float:
        positive, negative = outputs[labels == 1, 0], outputs[labels == 0, 0]
        if not positive.numel():
            return float("nan")
        if negative.numel() < most:
            return 1.0
        return float((positive > negative.topk(most).values[-1]).double().mean())

    return hits


def pair_roc_auc(outputs: Tensor, labels: Tensor) -> float:
    """The area under the ROC curve of one output for each pair."""
    return roc_auc(torch.cat([torch.zeros_like(outputs), outputs], 1), labels)


ACCURACY = Metric(name="accuracy", title="accuracy", compute=accuracy)
MACRO_F1 = Metric(name="macro_f1", title="macro-F1", compute=macro_f1)
ROC_AUC = Metric(name="roc_auc", title="ROC-AUC", compute=roc_auc)
HITS = {
    most: Metric(name=f"hits@{most}", title=f"Hits@{most}", compute=hits_at(most)) for most in (10, 20, 50, 100)
}
PAIR_ROC_AUC = Metric(name="roc_auc", title="ROC-AUC", compute=pair_roc_auc)
MEAN_ROC_AUC = Metric(name=ROC_AUC.name, title=ROC_AUC.title, compute=mean_roc_auc)  # of many labels

TITLES = {
    metric.name: metric.title for metric in (ACCURACY, MACRO_F1, ROC_AUC, *HITS.values())
}  # those of registered tasks come on top


def title_of(metric: str | None) -> str:
    """What a metric is called in tables; one that nobody has registered here by its own name.

    >>> title_of("macro_f1"), title_of("roc_auc"), title_of("mape"), title_of(None)
    ('macro-F1', 'ROC-AUC', 'mape', 'score')
    """
    return "score" if metric is None else TITLES.get(metric, metric)
