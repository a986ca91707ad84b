"""Every message that netbench can print, to be read aloud: `python -m tools.messages [WORD]`, WORD
in its file's name.

Python's are the texts in calls of what errors, findings and cautions are made by, and of what says
something on the way; the engine's those in calls of nb_fail(), nb_fail_errno() and nb_flow_fail().
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAKERS = re.compile(
    r"(Error|Lost|Refused|Busy|NotBuiltYet|Finding|Problem|Caution|_stop|_note|unreadable|misshapen"
    r"|\.(say|add|_print|note|error|unknown))$"
)
FAIL = re.compile(r"\b(?:nb_fail(?:_errno)?|nb_flow_fail)\s*(\(.*?\));", re.DOTALL)
TEXT = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')
Message = tuple[str, list[str]]  # where it is made, and its texts


def python_messages(root: Path = ROOT) -> Iterator[Message]:
    """What the controller can say; a `{...}` is what is filled in."""
    for file in sorted((root / "netbench").rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and MAKERS.search(ast.unparse(call.func)):
                values = (*call.args, *(keyword.value for keyword in call.keywords))
                texts = [ast.unparse(each) for each in values if _has_text(each)]
                if texts:
                    yield f"{file.relative_to(root)}:{call.lineno}", texts


def _has_text(node: ast.AST) -> bool:
    inner = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return any(isinstance(value, str) and " " in value for value in inner)


def c_messages(root: Path = ROOT) -> Iterator[Message]:
    """What the engine can say: operation, remedy, message, as far as they are texts."""
    for file in sorted((root / "native" / "src").rglob("*.c")):
        text = file.read_text()
        for call in FAIL.finditer(text):
            texts = ["".join(re.findall(r'"(.*?)"', each)) for each in TEXT.findall(call[1])]
            if texts:
                yield f"{file.relative_to(root)}:{text.count(chr(10), 0, call.start()) + 1}", texts


def main(words: list[str]) -> int:
    """Print the table."""
    for where, texts in (*python_messages(), *c_messages()):
        if all(word in where for word in words):
            print(where, textwrap.indent(textwrap.fill(" | ".join(texts), 130), "    "), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
