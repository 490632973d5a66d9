"""What a metric is: how it is computed, and what it is called in files and in tables."""

from collections.abc import Callable
from dataclasses import dataclass

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


def roc_auc(outputs: Tensor, labels: Tensor) -> float:
    """The area under the ROC curve of class 1; NaN where all nodes are of one class."""
    if labels.numel() == 0 or bool((labels == labels[0]).all()):
        return float("nan")
    with own_randomness(None):  # its import draws from Python's random numbers
        from sklearn.metrics import roc_auc_score

    margin = (outputs[:, 1] - outputs[:, 0]).cpu().numpy()
    return float(roc_auc_score(labels.cpu().numpy(), margin))


ACCURACY = Metric(name="accuracy", title="accuracy", compute=accuracy)
ROC_AUC = Metric(name="roc_auc", title="ROC-AUC", compute=roc_auc)

TITLES = {metric.name: metric.title for metric in (ACCURACY, ROC_AUC)}  # those of registered tasks come on top


def title_of(metric: str | None) -> str:
    """What a metric is called in tables; one that nobody has registered here by its own name.

    >>> title_of("roc_auc"), title_of("mape"), title_of(None)
    ('ROC-AUC', 'mape', 'score')
    """
    return "score" if metric is None else TITLES.get(metric, metric)
