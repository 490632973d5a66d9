"""Multi-label node classification: many labels for each node, each of which it has, has not, or is not known of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from fastglt.errors import InputError
from fastglt.graphs.parts import Part
from fastglt.tasks.base import Step
from fastglt.tasks.metrics import MEAN_ROC_AUC, both_there
from fastglt.tasks.nodes import NodeTask


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiLabel(NodeTask):
    """Labels of which a node has any number: binary cross-entropy, mean ROC-AUC, probabilities by sigmoid."""

    name = "multi-label"
    metrics = (MEAN_ROC_AUC,)
    answer, answers = "labels", "labels"
    answer_type = list[int]

    metric: str = MEAN_ROC_AUC.name

    @property
    def num_outputs(self) -> int:
        """One for each label."""
        return self.y.shape[1]

    @classmethod
    def read_labels(cls, y: object, num_nodes: int) -> Tensor:
        """A column for each label: whole, real or boolean numbers."""
        if not isinstance(y, Tensor) or y.dim() != 2 or y.shape[1] < 1 or y.is_complex():
            got = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else "none"
            raise InputError(f"data.y must have a column for each label (got {got}); name another task")
        if y.shape[0] != num_nodes:
            rule = f"data.y must have one row for each of {num_nodes} feature rows"
            raise InputError(f"{rule} (got shape {tuple(y.shape)})")
        return y.detach().float()

    @classmethod
    def settle_labels(cls, y: Tensor, split: Mapping[str, Tensor], metric: str) -> Tensor:
        """Labels are 0, 1 or NaN, some of them known; ROC-AUC needs a label that some nodes have and some have not.

        Those of nodes outside the split are NaN from here on.
        """
        used = y[torch.cat(list(split.values()))]
        wrong = used[(used != 0) & (used != 1) & ~used.isnan()]
        if wrong.numel():
            raise InputError(f"labels must be 0, 1 or NaN, which is unknown (got {float(wrong[0]):g})")
        if bool(y[split["train"]].isnan().all()):
            raise InputError("the training nodes must have a known label (got NaN alone)")
        for name in ("val", "test"):
            if split[name].numel() and not bool(both_there(y[split[name]]).any()):
                raise InputError(
                    f"roc_auc needs a label that some {name} nodes have and some have not (got none); "
                    "choose another split"
                )
        settled = torch.full_like(y, torch.nan)
        for nodes in split.values():
            settled[nodes] = y[nodes]
        return settled

    def step_in(self, part: Part, seed: int) -> Step | None:
        """All training nodes of the part; None if none of them has a known label."""
        step = super().step_in(part, seed)
        known = step is not None and not bool(self.y[step.nodes].isnan().all())
        return step if known else None

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        """The metric of some nodes' outputs; NaN for no nodes."""
        return super().score(outputs[:, : self.num_outputs], nodes)

    def label_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean binary cross-entropy of all labels that are known."""
        outputs, known = outputs[:, : self.num_outputs], ~labels.isnan()
        if bool(known.all()):
            return binary_cross_entropy_with_logits(outputs, labels)
        return binary_cross_entropy_with_logits(outputs[known], labels[known])

    def divergence(self, student: Tensor, teacher: Tensor) -> Tensor:
        """KL(teacher ‖ student) of each label, which is there or not; the mean over labels and nodes."""
        shares = teacher.sigmoid()
        entropy = binary_cross_entropy_with_logits(teacher, shares)
        return binary_cross_entropy_with_logits(student, shares) - entropy

    @classmethod
    def decide(cls, outputs: Tensor) -> Tensor:
        """1 for each label that is rather there than not, else 0; a row for each node."""
        return (outputs > 0).long()

    @classmethod
    def listed(cls, decided: Tensor) -> list[Any]:
        """The numbers of each node's labels."""
        return [row.nonzero().squeeze(1).tolist() for row in decided]

    @classmethod
    def probabilities(cls, outputs: Tensor) -> Tensor:
        """The sigmoid: of each label that it is there."""
        return outputs.sigmoid()

    @cached_property
    def _usual(self) -> Tensor:
        """The log-odds of each label among the training nodes, as if one more had it and one more had not."""
        labels = self.y[self.train]
        return ((labels == 1).sum(0) + 1.0).log() - ((labels == 0).sum(0) + 1.0).log()

    def distribution(self, outputs: Tensor) -> Tensor:
        """Shares of the labels, by how much more likely each is than usual: a frequent one would be all else."""
        return (outputs[:, : self.num_outputs] - self._usual).softmax(-1)

    def groups(self, outputs: Tensor) -> Tensor:
        """The label that stands out most."""
        return (outputs[:, : self.num_outputs] - self._usual).argmax(-1)

    def certainty(self, outputs: Tensor) -> Tensor:
        """Σ log p of what is predicted of each label, there or not."""
        return logsigmoid(outputs.abs()).sum()
