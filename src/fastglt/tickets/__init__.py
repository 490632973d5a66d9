"""A ticket: how it is found, trained alone, kept in a file and carried over to another network."""

from fastglt.tickets.ticket import Ticket

__all__ = ["Ticket"]
