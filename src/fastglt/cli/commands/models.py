"""`fastglt models`: the backbones that can be named, and the options they take."""

from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared.listing import AsJson, Facts, about, print_options, summary, tell

if TYPE_CHECKING:
    from fastglt.models import Backbone

EXAMPLES = (
    "Examples: [bold]fastglt models[/] · [bold]fastglt models gat[/] · "
    "[bold]fastglt models my_module:MyModel[/] (one of your own)"
)


def models(
    name: Annotated[str | None, typer.Argument(help="A model, or module:Class of your own.")] = None,
    json_output: AsJson = False,
) -> None:
    """List the models; with a name, what that one computes and which options it takes."""
    from fastglt.models import BACKBONES, lookup

    found = [_facts(backbone) for backbone in BACKBONES.values()] if name is None else _facts(lookup(name))
    tell(found, as_json=json_output, print_all=_print_all, print_one=_print_one)


def _facts(backbone: "type[Backbone]") -> Facts:
    from fastglt.models import Backbone
    from fastglt.models.options import options_of

    base = backbone.__mro__[1] if backbone.tried_out else Backbone
    return {
        "name": backbone.name,
        "summary": summary(backbone, base),
        "paper": backbone.paper,
        "about": about(backbone, base),
        "options": [option.to_json() for option in options_of(backbone).values()],
    }


def _print_all(facts: list[Facts]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(caption_justify="left", caption="fastglt models NAME tells more.")
    table.add_column("name", no_wrap=True)
    table.add_column("what it computes", ratio=1, overflow="fold")
    table.add_column("options", overflow="fold")
    for model in facts:
        paper = f"\n[dim]{escape(model['paper'])}[/]" if model["paper"] else ""
        options = ", ".join(option["name"] for option in model["options"])
        table.add_row(model["name"], f"{escape(model['summary'])}{paper}", options)
    Console().print(table, highlight=False)


def _print_one(facts: Facts) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"[bold]{facts['name']}[/]")
    for text in facts["about"]:
        console.print(f"\n{escape(text)}")
    if facts["paper"]:
        console.print(f"\n{escape(facts['paper'])}")
    print_options(console, "--model-option", facts["options"])
