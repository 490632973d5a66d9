"""Federated training: clients hold parts of a graph, and only the kept weights travel.

`plan` says what is done, `messages` what travels, `client` and `server` what each side does with it, `agreement`
how a common mask comes about, `rounds` puts them together; `flower` lets Flower carry the messages. None of the
others knows Flower.
"""

from fastglt.federated.plan import Plan
from fastglt.federated.rounds import Federation, federated_ticket

__all__ = ["Federation", "Plan", "federated_ticket"]
