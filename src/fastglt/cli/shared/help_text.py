"""Examples below a command's help: each on a line of its own, as it is typed."""


def as_lines(examples: str) -> str:
    r"""Examples that are separated by dots, for typer, which joins lines and keeps paragraphs.

    >>> print(as_lines("Examples: [bold]fastglt find[/] (a ticket) · [bold]fastglt runs[/]").replace("\n\n", "\n"))
    Examples:
    [bold]fastglt find[/]  # a ticket
    [bold]fastglt runs[/]
    """
    title, _, text = examples.partition(": ")
    return "\n\n".join([f"{title}:", *map(_commented, text.split(" · "))])


def _commented(line: str) -> str:
    """What stands in brackets behind an example, as a shell's comment."""
    command, bracket, about = line.partition("[/] (")
    return f"{command}[/]  # {about.removesuffix(')')}" if bracket else line
