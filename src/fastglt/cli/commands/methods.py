"""`fastglt methods`: who can be named, what it does and costs, and the options it takes."""

from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared.listing import AsJson, Facts, about, print_options, print_settings, tell

if TYPE_CHECKING:
    from fastglt.methods import Method

EXAMPLES = (
    "Examples: [bold]fastglt methods[/] · [bold]fastglt methods ugs[/] · "
    "[bold]fastglt methods my_module:MyMethod[/] (one of your own)"
)


def methods(
    name: Annotated[str | None, typer.Argument(help="A method, or module:Class of your own.")] = None,
    json_output: AsJson = False,
) -> None:
    """List the methods; with a name, how that one works and which options it takes."""
    from fastglt.methods import METHODS, lookup

    found = [_facts(method) for method in METHODS.values()] if name is None else _facts(lookup(name))
    tell(found, as_json=json_output, print_all=_print_all, print_one=_print_one)


def _facts(method: "type[Method]") -> Facts:
    from fastglt.methods import Method
    from fastglt.methods.options import options_of
    from fastglt.methods.settings.published import PUBLISHED

    published = PUBLISHED.get(method.name, {})
    return {
        "name": method.name,
        "summary": method.summary,
        "prunes": method.prunes,
        "epochs": method().epochs,
        "paper": method.paper,
        "about": about(method, Method),
        "options": [option.to_json() for option in options_of(method).values()],
        "published": [
            {"dataset": dataset, "model": model, "options": options}
            for (dataset, model), options in published.items()
        ],
    }


def _print_all(facts: list[Facts]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(caption_justify="left", caption=_CAPTION)
    table.add_column("name", no_wrap=True)
    table.add_column("what it does", ratio=1, overflow="fold")
    table.add_column("prunes", max_width=17, overflow="fold")
    table.add_column("epochs", justify="right", no_wrap=True)
    for method in facts:
        paper = f"\n[dim]{escape(method['paper'])}[/]" if method["paper"] else ""
        table.add_row(
            method["name"], f"{escape(method['summary'])}{paper}", method["prunes"], f"{method['epochs']:,}"
        )
    Console().print(table, highlight=False)


_CAPTION = "epochs: of a search at default settings, at most. fastglt methods NAME tells more."


def _print_one(facts: Facts) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"[bold]{facts['name']}[/]: {escape(facts['summary'])}")
    for text in facts["about"]:
        console.print(f"\n{escape(text)}")
    console.print(f"\nprunes {escape(facts['prunes'])}; {facts['epochs']:,} epochs at default settings, at most")
    if facts["paper"]:
        console.print(escape(facts["paper"]))
    print_options(console, "--option", facts["options"])
    if facts["published"]:
        options = dict.fromkeys(name for row in facts["published"] for name in row["options"])
        rows = [{**row, **row["options"]} for row in facts["published"]]
        title = "published settings, taken unless --option says otherwise"
        print_settings(console, title, ("dataset", "model", *options), rows)
