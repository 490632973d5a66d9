"""The options that several commands share, each with its one help text."""

from pathlib import Path
from typing import Annotated

import typer

from fastglt.cli.shared.completion import complete, datasets, methods, models
from fastglt.cli.shared.options import read_config
from fastglt.runs.store_place import DEFAULT

WHAT, HOW, LONG, JUDGED, RUN = "What to prune", "The method's options", "Training", "The test", "The run"

Dataset = Annotated[
    str,
    typer.Option(
        help="A name from [bold]fastglt data list[/], synthetic:nodes=…, poisoned:cora,meta=0.25, a .npz file, "
        "edges.csv, a folder or zip in OGB's layout, or a prepared graph.fgr.",
        autocompletion=complete(datasets),
        rich_help_panel=WHAT,
    ),
]
Methods = Annotated[
    str,
    typer.Option(
        help="Names from [bold]fastglt methods[/] or module:Class of your own, comma-separated; or all. Options of "
        r"one alone in brackets: fastglt,fastglt\[ramp=1,start=random].",
        autocompletion=complete(methods, several=True),
        rich_help_panel=WHAT,
    ),
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="METHOD.NAME=VALUE",
        help="An option of one of the methods, as often as needed; [bold]fastglt methods METHOD[/] lists them.",
        rich_help_panel=HOW,
    ),
]
Jobs = Annotated[
    int, typer.Option(help="Runs at a time; 0: as many as cores allow, or one on a GPU.", rich_help_panel=RUN)
]
Engine = Annotated[
    str,
    typer.Option(
        help="Who executes the runs: local (processes of this machine), or ray (tasks of a Ray cluster; needs the "
        "extra ray).",
        rich_help_panel=RUN,
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        envvar="RAY_ADDRESS",
        help="HOST:PORT of a Ray cluster's head, for --engine ray; without it Ray is started on this machine.",
        rich_help_panel=RUN,
    ),
]
ThreadsOfEach = Annotated[int, typer.Option("--threads", help="Of each run; 0: all cores.", rich_help_panel=RUN)]
Model = Annotated[
    str,
    typer.Option(
        help="A name from [bold]fastglt models[/], or module:Class of your own.",
        autocompletion=complete(models),
        rich_help_panel=WHAT,
    ),
]
ModelOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of the model, as often as needed; [bold]fastglt models NAME[/] lists them.",
        rich_help_panel=WHAT,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="What is predicted: node-classification, multi-label, link (of pairs), or module:Class of your own "
        "(default: what the data is for).",
        rich_help_panel=WHAT,
    ),
]
TaskOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of the task, as often as needed. Of link: decoding=mlp or dot, decoder_layers, "
        "decoder_hidden, batch (positives of a step; default: all at once).",
        rich_help_panel=WHAT,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="How it is scored: accuracy, macro-f1 or roc-auc; of links hits@50 (10, 20, 100) or roc-auc "
        "(default: the dataset's, or the task's first).",
        rich_help_panel=WHAT,
    ),
]


def _show_wide(wide: bool) -> bool:
    if wide:
        from fastglt.report.tables import show_wide

        show_wide()
    return wide


Wide = Annotated[
    bool,
    typer.Option(
        "--wide",
        callback=_show_wide,
        help="Tables as wide as they need to be; else a terminal gets those that do not fit stacked.",
        rich_help_panel=RUN,
    ),
]
Margin = Annotated[
    float, typer.Option(help="How much worse than dense still counts as equal.", rich_help_panel=JUDGED)
]
Level = Annotated[
    float,
    typer.Option(help="How often a ticket worse by the margin may pass, in (0, 0.5).", rich_help_panel=JUDGED),
]
Structure = Annotated[
    str,
    typer.Option(
        help="What of the weights goes: weights, one by one, or units: whole hidden ones, a smaller dense network.",
        rich_help_panel=WHAT,
    ),
]
SplitSeed = Annotated[
    int, typer.Option(help="Seed of the random split, if the data has none.", rich_help_panel=WHAT)
]
OneshotEpochs = Annotated[
    int | None, typer.Option(help="Epochs before the cut (default: the paper's).", rich_help_panel=LONG)
]
DenoiseEpochs = Annotated[
    int | None, typer.Option(help="Epochs after the cut (default: the paper's).", rich_help_panel=LONG)
]
Interval = Annotated[
    int | None, typer.Option(help="Epochs between two swaps (default: the paper's).", rich_help_panel=LONG)
]
LearningRate = Annotated[float | None, typer.Option(help="Adam's learning rate.", rich_help_panel=LONG)]
WeightDecay = Annotated[float | None, typer.Option(help="Of weights, not of masks.", rich_help_panel=LONG)]
Distill = Annotated[
    bool,
    typer.Option(
        "--distill",
        help="Distilled tickets: the dense network's outputs for all nodes teach search and retraining. "
        "Verdicts then have two opponents, the plain dense network and one taught in the same way.",
        rich_help_panel=LONG,
    ),
]
DistillWeight = Annotated[
    float | None,
    typer.Option(
        help="Of KL(teacher ‖ student) beside the task's loss; this and the next five only with --distill "
        "(default: 100).",
        rich_help_panel=LONG,
    ),
]
DistillSearch = Annotated[
    float | None,
    typer.Option(
        help="Share of that weight in the search; 0: the ticket alone is taught (default: 0.01).",
        rich_help_panel=LONG,
    ),
]
DistillTemperature = Annotated[
    float | None,
    typer.Option(help="That teacher's and ticket's outputs are divided by (default: 1).", rich_help_panel=LONG),
]
DistillLabels = Annotated[
    float | None,
    typer.Option(help="Weight of the task's own loss beside; 0: teacher alone (default: 1).", rich_help_panel=LONG),
]
DistillLr = Annotated[
    float | None,
    typer.Option(
        help="Learning rate of the taught ticket alone; 0: as --lr (default: 0.01, or --lr if higher). Verdicts "
        "then have a third opponent, a plain dense network at this rate.",
        rich_help_panel=LONG,
    ),
]
DistillNodes = Annotated[
    str | None,
    typer.Option(help="Whom it teaches about: all nodes, or unlabelled ones (default: all).", rich_help_panel=LONG),
]
IsolatedDecay = Annotated[
    str | None,
    typer.Option(
        help="Weight decay of a ticket retrained alone: whole, or density: times its share of weights "
        "(default: whole).",
        rich_help_panel=LONG,
    ),
]
Parts = Annotated[
    int | None,
    typer.Option(
        help="Mini-batches: split the graph into so many parts, and train on some of them in each step (default: "
        "1, all of it).",
        rich_help_panel=LONG,
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        help="metis: clusters with few edges between them; blocks: nodes as they are numbered; random: drawn anew "
        "in each epoch (default: metis).",
        rich_help_panel=LONG,
    ),
]
PartsPerStep = Annotated[
    int | None,
    typer.Option(
        help="Parts of one step, with the edges between them (default: 1; under torchrun one for each process).",
        rich_help_panel=LONG,
    ),
]
Shares = Annotated[
    int | None,
    typer.Option(
        help="Shares into which a step's parts are divided, and that processes of torchrun compute apart "
        "(default: one for each process).",
        rich_help_panel=LONG,
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="With --parts: every step sees all of the graph, and only the computing goes part by part. The result "
        "is that of full batch, with less memory and more time.",
        rich_help_panel=LONG,
    ),
]
Inductive = Annotated[
    float | None,
    typer.Option(
        help="Share of the nodes to hide, with their edges, from teacher, search and training; networks are scored "
        "on those of them that are test nodes at the end (drawn by --split-seed).",
        rich_help_panel=WHAT,
    ),
]
Hidden = Annotated[
    int | None,
    typer.Option(
        help="Width of the hidden layers (default: as published for OGB's sets, or 512).", rich_help_panel=LONG
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, ….", rich_help_panel=RUN)]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder of raw datasets.", envvar="FASTGLT_DATA", rich_help_panel=RUN)
]
Directed = Annotated[bool, typer.Option(help="Do not symmetrise a graph from files.", rich_help_panel=RUN)]
CheckpointEvery = Annotated[
    float, typer.Option(help="Seconds between checkpoints; 0: every epoch.", rich_help_panel=RUN)
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="YAML file with any of these options; the command line and environment variables win.",
        callback=read_config,
        is_eager=True,
        rich_help_panel=RUN,
    ),
]
Store = Annotated[
    Path,
    typer.Option(
        help="File in which every finished run is recorded; [bold]fastglt runs[/] lists it.",
        envvar="FASTGLT_STORE",
        callback=lambda path: path.expanduser(),
        rich_help_panel=RUN,
    ),
]
STORE = DEFAULT
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Say what would run, what is reused, and about how long it takes.", rich_help_panel=RUN
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.", rich_help_panel=RUN)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.", rich_help_panel=RUN)]
