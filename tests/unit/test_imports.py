"""Which part of netbench may import which: a table, checked over the syntax tree of every file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

# Room -> rooms below it. What is missing here may import nothing of netbench.
ALLOWED_IMPORTS: dict[str, set[str]] = {
    "base": set(),
    "facts": set(),
    "model": set(),
    "stats": {"base", "model"},
    "plan": {"model"},
    "result": {"base", "facts"},
    "engine": {"base"},
    "hosts": {"base", "facts"},
    "tools": {"base", "model", "result.record"},
    "settings": {"base", "hosts.host_channel", "model", "result.journal"},
    "campaign": {"base", "engine.catalogue", "engine.own_engine", "model", "plan", "settings"}
    | {"tools"},
    "read": {"base", "facts", "model", "result", "stats"},
    "report": {"base", "facts", "model", "read", "result", "stats"},
    "tables": {"base", "facts", "read", "report", "result"},
    "results": {"base", "read", "report", "tables"},
    "run": {"base", "campaign.load", "engine", "facts", "hosts", "model", "plan", "read", "result"}
    | {"settings", "stats", "tools"},
    "live": {"base", "campaign", "model", "plan", "read", "report", "result"} | {"run", "stats"},
    "templates": {"base"},
    "listing": {"engine", "facts", "model", "read", "report", "run", "settings", "tools"},
    "api": {"base", "campaign", "live", "model", "plan", "read", "report", "result", "results"}
    | {"run", "tables", "templates"},
    "cli": {"__version__", "api", "base", "campaign", "listing", "live", "model", "plan", "read"}
    | {"report", "result", "run", "stats", "tables", "templates"},
    "__main__": {"base", "cli"},
    "__init__": {"api", "results"},
    # Add-ons
    "kernels": {"base", "campaign", "engine", "facts", "hosts.host_channel", "lab", "model", "plan"}
    | {"result", "run", "stats"},
    "lab": {"base", "kernels", "model"},
    "fleet": {"base", "campaign", "facts", "model", "plan", "read", "report", "result", "stats"},
}
# Where the trunk asks for an add-on.
DOORS = {
    "api.py": {"fleet", "kernels", "lab"},
    "campaign/hosts.py": {"fleet"},
    "live/watched.py": {"fleet"},
    "report/source.py": {"fleet"},
    "run/check.py": {"kernels"},
}
STANDARD_LIBRARY_ONLY = "base", "facts", "model", "plan"
# Third-party packages that only one file may import.
ONLY = {
    "fabric": {"hosts/ssh/connection.py"},
    "paramiko": {f"hosts/ssh/{name}.py" for name in ("connection", "authentication")},
    "cryptography": {"lab/userland.py"},
    "matplotlib": {"report/plots.py"},
    "duckdb": {f"tables/{name}.py" for name in ("database", "samples", "table_files")},
    "dask": {"fleet/dask_engine.py"},
    "distributed": {"fleet/dask_engine.py"},
    "rich": {"live/screen.py"},
    "netbench.engine._native": {"engine/binding.py"},
    "cffi": {"engine/build_native.py"},
}
FILES = sorted((ROOT / "netbench").rglob("*.py"))


@cache
def imports(file: Path) -> frozenset[str]:
    """Every module that a file imports, wherever in it; `from x import y` as x.y, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"{file}: relative import; write it out")
    return frozenset(found)


def part(file: Path) -> str:
    return file.relative_to(ROOT / "netbench").parts[0].removesuffix(".py")


def allowed(module: str, permitted: set[str]) -> bool:
    name = module.removeprefix("netbench.")
    return any(name == one or name.startswith(one + ".") for one in permitted)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_each_part_imports_only_what_it_may(file: Path) -> None:
    mine = part(file)
    inside = {module for module in imports(file) if module.startswith("netbench.")}
    door = DOORS.get(str(file.relative_to(ROOT / "netbench")), set())
    permitted = ALLOWED_IMPORTS.get(mine, set()) | {mine} | door
    if file.stem.endswith("_verb"):  # an add-on's verb, of which cli knows the name alone
        permitted |= ALLOWED_IMPORTS["cli"] | {"cli"}
    assert {module for module in inside if not allowed(module, permitted)} == set()


@pytest.mark.parametrize("name", [*STANDARD_LIBRARY_ONLY, "result"])
def test_the_base_layer_imports_only_the_standard_library(name: str) -> None:
    modules = {module for file in FILES if part(file) == name for module in imports(file)}
    assert modules, f"no file of the base layer is named {name}"
    more = {"pydantic", "pydantic_core", "yaml"} if name == "result" else set()
    outside = {module.split(".")[0] for module in modules} - {"netbench", "__future__"}
    assert outside <= {*sys.stdlib_module_names, *more}


@pytest.mark.parametrize("package", sorted(ONLY))
def test_each_of_these_packages_is_imported_by_one_file(package: str) -> None:
    users = set()
    for file in FILES:
        if any(module == package or module.startswith(package + ".") for module in imports(file)):
            users.add(str(file.relative_to(ROOT / "netbench")))
    assert users <= ONLY[package]


def test_only_main_imports_the_command_line() -> None:
    users = {
        part(file)
        for file in FILES
        if any(allowed(m, {"cli"}) for m in imports(file) if m.startswith("netbench."))
        and not file.stem.endswith("_verb")
    }
    assert users <= {"__main__", "cli"}


def import_graph(files: Iterable[Path]) -> dict[str, set[str]]:
    """Module -> the modules of `files` that it imports, also inside functions."""
    names = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    by_module = {name.removesuffix(".__init__"): file for file, name in names.items()}

    def nearest(name: str) -> str:
        while name and name not in by_module:
            name = name.rpartition(".")[0]
        return name

    return {
        module: {nearest(name) for name in imports(file)} - {module, ""}
        for module, file in by_module.items()
    }


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(import_graph(FILES)).prepare()  # a CycleError names the circle


# To a text or a file, of which no line names stdout; and of a child that never returns.
FINE = re.compile(
    r"(vsn|sn|s|f)printf\(|__printf__|_exit\((EXEC_FAILED|GUARD_DONE|SOAKER_FAILED)\)"
)


def test_no_exit_abort_or_print_in_the_library() -> None:
    calls = ("exit(", "abort(", "printf(", "perror(", "puts(", "stdout", "stderr")
    found = []
    for file in sorted((ROOT / "native" / "src").rglob("*.c")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            words = FINE.sub("", line)
            if file.name == "main.c":
                words = words.replace("_exit(code)", "")
            found += [f"{file.name}:{number}" for call in calls if call in words]
    assert found == []
