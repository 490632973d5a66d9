"""Text on a terminal: what comes from files is shown and never obeyed, and every locale can write it."""

import codecs
import io
import re
import shutil
import sys
import textwrap
from typing import TextIO

WARNING = "warning: "  # how a line that warns begins
_LONGEST = 4000  # characters
# Control characters (ESC among them), marks that turn the direction of text or end a line, and halves of pairs.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_PLAIN = {
    "–": "-",
    "−": "-",
    "…": "...",
    "·": "*",
    "→": "->",
    "×": "x",
    "±": "+-",
    "Θ": "Theta",
    "‖": "||",
    "█": "#",
    "“": '"',
    "”": '"',
    "’": "'",
    "─": "-",
    "━": "-",
    "│": "|",
}


def safe(text: object) -> str:
    r"""A text in one line that a terminal shows as it stands: control characters are written as escapes.

    >>> print(safe("gcn\x1b[31m\n"))
    gcn\x1b[31m\n
    """
    found = str(text)
    if len(found) > _LONGEST:
        found = f"{found[: _LONGEST // 2]} … {found[-_LONGEST // 2 :]}"
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), found)


def warn(message: str) -> None:
    """One line on standard error; a terminal gets it wrapped between words."""
    text = f"{WARNING}{safe(message)}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    print(text, file=sys.stderr)


def write_anyhow(stream: TextIO) -> None:
    """Let a stream write every text: a character that its encoding lacks is replaced by one that looks like it."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_in(error.encoding, _PLAIN.get(character, "?")) for character in lost), error.end


def _in(encoding: str, text: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "?"
    return text


_HANDLER = "fastglt.similar"
codecs.register_error(_HANDLER, _replace)
