"""Every message that netbench can print, to be read aloud: `python -m tools.messages [WORD]`, WORD
in its file's name.

Python's are found on the syntax tree (what errors, findings, problems and cautions are made of, and
what is said on the way), the engine's by the calls of nb_fail(), nb_fail_errno() and
nb_flow_fail(). A `{...}` is what is filled in.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAKERS = re.compile(
    r"(Error|Lost|Refused|Busy|NotBuiltYet|Finding|Problem|Caution|_stop|_note|unreadable|misshapen)$"
)
SPEAKERS = (
    "say",
    "add",
    "_print",
    "note",
    "error",
    "unknown",
)  # methods, where what they take is a text
FAIL = re.compile(r"\b(nb_fail(?:_errno)?|nb_flow_fail)\s*\(")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
WIDTH = 130


@dataclass(frozen=True)
class Message:
    """Where it is made, by what, and its texts."""

    where: str
    maker: str
    texts: tuple[str, ...]

    def __str__(self) -> str:
        body = textwrap.fill(
            " | ".join(self.texts), WIDTH, initial_indent="    ", subsequent_indent="    "
        )
        return f"{self.where} {self.maker}\n{body}"


def _written(node: ast.AST, known: dict[str, ast.expr]) -> str:
    """A string expression as it is written, with {...} for what is filled in; "" for what is no
    text.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_written(value, known) for value in values)
        case ast.FormattedValue(value=value):
            inner = _written(value, known) if isinstance(value, ast.Name) else ""
            return inner or f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{_written(left, known)}{_written(right, known) or f'{{{ast.unparse(right)}}}'}"
        case ast.IfExp(body=body, orelse=other):
            return " / ".join(filter(None, (_written(body, known), _written(other, known))))
        case ast.Name(id=name) if name in known:
            return _written(known[name], {})
    return ""


class _Walker(ast.NodeVisitor):
    """Gathers the messages of one file; names that hold a text are looked up in their function."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Message] = []
        self._known: dict[str, ast.expr] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self._known = self._known, dict(self._known)
        self.generic_visit(node)
        self._known = outer

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._known[target.id] = node.value
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else ""
        )
        if not MAKERS.search(name) and not (
            isinstance(node.func, ast.Attribute) and name in SPEAKERS
        ):
            return
        texts = [
            _written(value, self._known)
            for value in (*node.args, *(keyword.value for keyword in node.keywords))
        ]
        said = tuple(text for text in texts if " " in text)
        if said:
            self.found.append(Message(f"{self.file}:{node.lineno}", name, said))


def python_messages(root: Path = ROOT) -> Iterator[Message]:
    """What the controller can say."""
    for file in sorted((root / "netbench").rglob("*.py")):
        walker = _Walker(str(file.relative_to(root)))
        walker.visit(ast.parse(file.read_text()))
        yield from walker.found


def _arguments(text: str) -> list[str]:
    """The arguments of a call whose text begins behind its bracket."""
    depth, quoted, start, found = 1, False, 0, []
    for at, letter in enumerate(text):
        if letter == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        if not quoted and (depth == 0 or (depth == 1 and letter == ",")):
            found.append(text[start:at])
            start = at + 1
        if depth == 0:
            return found
    return found


def c_messages(root: Path = ROOT) -> Iterator[Message]:
    """What the engine can say: operation | message | remedy."""
    for file in sorted((root / "native" / "src").rglob("*.c")):
        text = file.read_text()
        for call in FAIL.finditer(text):
            values = _arguments(text[call.end() :])
            if len(values) < 4 or not TEXT.search("".join(values)):
                continue  # the function itself
            first = 2 if call[1] == "nb_fail" else 1  # error, code, operation, remedy, format, ...
            operation, remedy, form = (
                "".join(TEXT.findall(value)) or value.strip() for value in values[first : first + 3]
            )
            line = text.count("\n", 0, call.start()) + 1
            yield Message(f"{file.relative_to(root)}:{line}", call[1], (operation, form, remedy))


def main(words: list[str]) -> int:
    """Print the table."""
    for message in (*python_messages(), *c_messages()):
        if all(word in message.where for word in words):
            print(message)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
