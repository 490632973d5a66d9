from fastglt.report.latex import latex_table


def test_a_table_has_a_line_for_each_row_and_no_command_of_a_name() -> None:
    table = latex_table(r"of \input{x}", ["method", "n"], [["a & b", "5"], ["fastglt[ramp=1]", "81.5 ± 0.2"]])
    lines = table.splitlines()
    assert lines[2] == r"\caption{of \textbackslash{}input\{x\}}"
    assert lines[3] == r"\begin{tabular}{lr}"
    assert lines[7:9] == [r"a \& b & 5 \\", r"fastglt[ramp=1] & 81.5 $\pm$ 0.2 \\"]
