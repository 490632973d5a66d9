from fastglt.report.notebook import facts, grid


def test_tables_hold_text_and_nothing_else() -> None:
    assert "<td" in facts("a ticket", {"model": "gcn"})
    for shown in (facts("<i>", {"<b>": "<script>"}), grid("<i>", ["<b>"], [["<script>"]])):
        assert "&lt;script&gt;" in shown
        assert not any(tag in shown for tag in ("<i>", "<b>", "<script>"))
