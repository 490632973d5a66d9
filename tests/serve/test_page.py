"""The API page shows what the description has, and needs nobody else for it."""

import re
from html.parser import HTMLParser

from fastapi.testclient import TestClient

from fastglt.serve import make_app
from fastglt.serve.page import page

from .servers import small_predictor


def test_it_loads_nothing_from_another_host_and_runs_nothing() -> None:
    with TestClient(make_app(small_predictor())) as client:
        answer = client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"https?:|(src|href|action)\s*=\s*[\"']?//|@import|url\(|<script|\son\w+=", answer.text)
    assert set(re.findall(r'href="([^"#]*)', answer.text)) == {"data:,", "openapi.json", ""}
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_every_address_and_schema_is_there_and_every_link_leads_somewhere() -> None:
    description = make_app(small_predictor()).openapi()
    text = page(description)
    for name in (*description["paths"], *description["components"]["schemas"]):
        assert f"<code>{name}</code>" in text
    assert "list (1 … 10000) of integer (0 … 6)" in text
    assert set(re.findall(r'href="#([^"]*)', text)) <= set(re.findall(r'id="([^"]*)', text))


def test_its_tags_are_closed() -> None:
    class Checker(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "link"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    checker = Checker()
    checker.open = []
    checker.feed(page(make_app(small_predictor()).openapi()))
    assert checker.open == []


def test_a_description_cannot_write_html() -> None:
    bad = "<script>alert(1)</script>"
    operation = {"summary": bad, "description": bad, "responses": {bad: {"description": bad}}}
    schema = {"type": bad, "description": bad, "properties": {bad: {"type": bad, "description": bad}}}
    info = {"title": bad, "version": bad, "summary": bad}
    text = page({"info": info, "paths": {bad: {"get": operation}}, "components": {"schemas": {bad: schema}}})
    assert bad not in text
    assert "&lt;script&gt;" in text
