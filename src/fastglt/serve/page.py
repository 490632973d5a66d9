"""The API page: the OpenAPI description as HTML, made here. No scripts, and nothing from another host."""

import json
from html import escape
from typing import Any

Schema = dict[str, Any]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b636b; --paper: #fff; --box: #f4f5f7; --line: #d5d9de;
  --link: #0b57c4; --get: #0a6b3d; --post: #8a4300; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #a3abb3; --paper: #15181b; --box: #1f2428;
  --line: #3a4148; --link: #82b4ff; --get: #6fd49b; --post: #ffb57a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 2.2rem 0 .6rem; font-size: 1.2rem; }
h3 { margin: 0; font-size: 1rem; display: inline; } h4 { margin: 1rem 0 .3rem; font-size: .95rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px; }
details { margin: .6rem 0; border: 1px solid var(--line); border-radius: 8px; }
summary { padding: .6rem .9rem; cursor: pointer; border-radius: 8px; } details > div { padding: 0 .9rem .9rem; }
code, pre { font: .9em/1.45 ui-monospace, monospace; }
pre { margin: .3rem 0; padding: .7rem; background: var(--box);
  border-radius: 6px; overflow-x: auto; }
.method { display: inline-block; min-width: 3.2rem; font-weight: 700; } .get { color: var(--get); }
.post { color: var(--post); }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
"""
_EXAMPLE = json.dumps({"nodes": [0, 5], "probabilities": True})
_PAIRS = json.dumps({"pairs": [[0, 5], [3, 7]]})


def page(openapi: Schema) -> str:
    """A page of an OpenAPI description: each address, what it takes, what it gives, and the schemas of both."""
    about = openapi["info"]
    title = escape(about["title"])
    operations = [
        _operation(path, method, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in openapi["components"]["schemas"].items()]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{title} <span class="soft">{escape(about["version"])}</span></h1>
<p>{escape(about.get("summary", ""))} For programs: <a href="openapi.json">openapi.json</a>.</p>
</header>
<main>
<h2>Addresses</h2>
{"".join(operations)}
<h2>Schemas</h2>
{"".join(schemas)}
</main>
</body>
</html>
"""


def _operation(path: str, method: str, operation: Schema) -> str:
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    parts = [f"<p>{escape(operation.get('description', ''))}</p>"]
    if asked:
        example = _PAIRS if asked.get("$ref", "").endswith("/PairRequest") else _EXAMPLE
        command = f"curl localhost:8000{path} --json '{example}'"
        parts.append(f'<h4>Body</h4><p>{_kind(asked)}, for example</p><pre tabindex="0">{escape(command)}</pre>')
    rows = [_response(status, response) for status, response in operation["responses"].items()]
    parts.append(f"<h4>Answers</h4>{_table(('status', 'when', 'body'), rows)}")
    told = f'<span class="method {method}">{method.upper()}</span> <h3><code>{escape(path)}</code></h3>'
    opened = " open" if asked else ""
    summary = escape(operation.get("summary", ""))
    return f"<details{opened}><summary>{told} {summary}</summary><div>{''.join(parts)}</div></details>\n"


def _response(status: str, response: Schema) -> tuple[str, str, str]:
    kinds = [_kind(content["schema"]) for content in response.get("content", {}).values() if content.get("schema")]
    return f"<code>{escape(status)}</code>", escape(response["description"]), ", ".join(kinds)


def _schema(name: str, schema: Schema) -> str:
    needed = schema.get("required", [])
    rows = [
        (
            f"<code>{escape(field)}</code>" + (' <span class="soft">(required)</span>' if field in needed else ""),
            _kind(given),
            escape(given.get("description", "")),
        )
        for field, given in schema.get("properties", {}).items()
    ]
    inside = _table(("field", "type", "meaning"), rows) if rows else f"<p>{_kind(schema)}</p>"
    about = f"<p>{escape(schema.get('description', ''))}</p>{inside}"
    told = f"<summary><h3><code>{escape(name)}</code></h3></summary>"
    return f'<details open id="{escape(name)}">{told}<div>{about}</div></details>\n'


def _kind(schema: Schema) -> str:
    """A schema in words; others by name, with a link."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    several = schema.get("anyOf") or schema.get("oneOf")
    if several and "type" not in schema:
        return " or ".join(_kind(one) for one in several)
    if schema.get("type") == "array":
        return f"list{_range(schema, 'minItems', 'maxItems')} of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("type", "anything"))) + _range(schema, "minimum", "maximum")


def _range(schema: Schema, least: str, most: str) -> str:
    bounds = [f"{schema[key]:.10g}" for key in (least, most) if key in schema]
    return f" ({' … '.join(dict.fromkeys(bounds))})" if bounds else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, str, str]]) -> str:
    titles = "".join(f'<th scope="col">{one}</th>' for one in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>'
