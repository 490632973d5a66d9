"""Node classification: one of several classes for each node."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from fastglt.errors import InputError
from fastglt.tasks.metrics import ACCURACY, MACRO_F1, ROC_AUC
from fastglt.tasks.nodes import NodeTask


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeClassification(NodeTask):
    """A class for each node: cross-entropy; accuracy, macro-F1, ROC-AUC; probabilities by softmax."""

    name = "node-classification"
    metrics = (ACCURACY, MACRO_F1, ROC_AUC)
    answer, answers = "class", "classes"

    metric: str = ACCURACY.name

    @property
    def num_outputs(self) -> int:
        """One for each class that the split has."""
        return int(self.y[torch.cat([self.train, self.val, self.test])].max()) + 1

    @classmethod
    def read_labels(cls, y: object, num_nodes: int) -> Tensor:
        """Whole numbers, one for each node; a negative one is unknown."""
        if not isinstance(y, Tensor) or y.dtype not in (torch.int64, torch.int32):
            got = str(y.dtype) if isinstance(y, Tensor) else "none"
            raise InputError(
                f"data.y must hold one integer label per node (got {got}); convert it, or name another task"
            )
        y = y.squeeze(-1) if y.dim() == 2 and y.shape[1] == 1 else y
        if y.shape != (num_nodes,):
            rule = f"data.y must have one label for each of {num_nodes} feature rows"
            raise InputError(f"{rule} (got shape {tuple(y.shape)})")
        return y.long()

    @classmethod
    def settle_labels(cls, y: Tensor, split: Mapping[str, Tensor], metric: str) -> Tensor:
        """Classes are 0, 1, 2, …; ROC-AUC needs two of them, or more, among validation and among test nodes."""
        used, rows = y[torch.cat(list(split.values()))], y.numel()
        if int(used.min()) < 0:
            raise InputError(f"labels must be 0, 1, 2, … (got {int(used.min())})")
        if int(used.max()) >= rows:
            raise InputError(
                f"labels must be class numbers below the number of nodes, {rows} (got {int(used.max())})"
            )
        if metric == ROC_AUC.name:
            _check_several_classes(y, int(used.max()) + 1, split)
        return y.clamp(min=0)

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        """The metric of some nodes' outputs; NaN for no nodes. ROC-AUC ranks by the classes that the split has."""
        known = outputs[:, : self.num_outputs] if self.metric == ROC_AUC.name else outputs
        return super().score(known, nodes)

    def label_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean cross-entropy."""
        return cross_entropy(outputs, labels)

    def divergence(self, student: Tensor, teacher: Tensor) -> Tensor:
        """KL(teacher ‖ student), the mean over nodes."""
        return kl_div(student.log_softmax(-1), teacher.log_softmax(-1), reduction="batchmean", log_target=True)

    @classmethod
    def decide(cls, outputs: Tensor) -> Tensor:
        """The class with the largest output."""
        return outputs.argmax(-1)

    @classmethod
    def probabilities(cls, outputs: Tensor) -> Tensor:
        """The softmax."""
        return outputs.softmax(-1)

    def groups(self, outputs: Tensor) -> Tensor:
        """The predicted class."""
        return outputs.argmax(-1)

    def distribution(self, outputs: Tensor) -> Tensor:
        """The softmax."""
        return outputs.softmax(-1)

    def certainty(self, outputs: Tensor) -> Tensor:
        """Σ log p(the predicted class)."""
        return outputs.log_softmax(-1).amax(-1).sum()


def _check_several_classes(y: Tensor, num_classes: int, split: Mapping[str, Tensor]) -> None:
    if num_classes < 2:
        raise InputError(f"roc_auc needs two classes at least (got {num_classes})")
    for name in ("val", "test"):
        found = y[split[name]].unique().tolist()  # type: ignore[no-untyped-call]
        if len(found) == 1:
            wanted = "both classes" if num_classes == 2 else "two classes at least"
            raise InputError(f"roc_auc needs {wanted} among the {name} nodes (got {found[0]} alone)")
