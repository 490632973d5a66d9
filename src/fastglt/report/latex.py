"""Tables for papers, in LaTeX with the package booktabs."""

from collections.abc import Sequence

from fastglt.system.terminal import safe

_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "·": r"$\cdot$",
    "Θ": r"$\Theta$",
    "κ": r"$\kappa$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def latex_text(value: object) -> str:
    r"""A text that LaTeX sets as it stands.

    >>> print(latex_text("81.50 ± 0.20 %"), latex_text(r"a_b\c"))
    81.50 $\pm$ 0.20 \% a\_b\textbackslash{}c
    """
    return "".join(_SPECIAL.get(character, character) for character in safe(value))


def latex_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a caption; the first column is ranged left, the others right."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}",
        r"\toprule",
        _line(headings),
        r"\midrule",
        *map(_line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"
