"""Changes to a campaign's tree before it is read: `--set PATH=VALUE` and `--quick`."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.base.errors import CampaignError, Problem
from netbench.campaign.settings import is_setting
from netbench.campaign.tree import Listing, Node, Table, Word
from netbench.campaign.yaml_tree import DEPTH_MAX, UNPRINTABLE, parse_value

QUICK = {
    "repeat.min": "3",
    "repeat.max": "3",
    "transfer.warmup": "200ms",
    "transfer.duration": "1s",
}
WHOLE_KEYS = ("settings", "sweep")  # mappings whose keys have dots of their own
BOUNDS = ("duration", "bytes", "requests")  # of a run, by one of them
ORIGIN_SHOWN = 80  # characters of an option in a message


def split_set(words: str, source: str, option: str = "--set ") -> tuple[str, str]:
    """PATH and VALUE of one `PATH=VALUE`. Errors: CampaignError."""
    bad = UNPRINTABLE.search(words)
    if bad:
        shown = words.encode("unicode_escape").decode("ascii")
        message = f"expected text, got the control character U+{ord(bad[0]):04X}"
        raise CampaignError(source, [Problem(0, "", f"{message} (from {option}{shown})")])
    path, equals, value = words.partition("=")
    if not equals or not path.strip() or path.strip() != path:
        raise CampaignError(
            source, [Problem(0, "", f"expected {option}PATH=VALUE, got {option}{words!r}")]
        )
    return path, value


def put(tree: Table, path: str, value: Node, source: str) -> None:
    """Put a value at a dotted path, making mappings on the way. Errors: CampaignError when it goes
    through a list, or is longer than a file may be deep.
    """
    holder = tree
    key, rest = _step(tree, path, "")
    top, depth = key, 1
    while rest:
        depth += 1
        if depth > DEPTH_MAX:
            message = f"expected at most {DEPTH_MAX} levels of nesting, got more"
            raise CampaignError(source, [Problem(0, top, f"{message} (from {_cut(value.origin)})")])
        inner = holder.entries.get(key)
        if isinstance(inner, Listing):
            message = f"expected the whole list of {key}, got an item (from {_cut(value.origin)})"
            raise CampaignError(source, [Problem(0, path, message)])
        if not isinstance(inner, Table):
            inner = Table(flow=False)
            _place(holder, key, inner)
        holder = inner
        key, rest = _step(holder, rest, top)
    _place(holder, key, value)


def _cut(origin: str) -> str:
    return origin if len(origin) <= ORIGIN_SHOWN else f"{origin[: ORIGIN_SHOWN - 3]}..."


def _step(holder: Table, steps: str, top: str) -> tuple[str, str]:
    """The longest key that is there, else up to the next dot; where keys have dots, all."""
    if known := [key for key in holder.entries if steps == key or steps.startswith(f"{key}.")]:
        key = max(known, key=len)
        return key, steps[len(key) + 1 :]
    misplaced = top == "transfer" and is_setting(steps)  # so that it is told with its place
    if top in WHOLE_KEYS or misplaced:
        return steps, ""
    step, _, rest = steps.partition(".")
    return step, rest


def _place(holder: Table, key: str, value: Node) -> None:
    holder.entries[key] = value
    holder.lines.setdefault(key, 0)


def drop_other_bound(tree: Table, path: str) -> None:
    """Setting one of what bounds a run removes the others; sweeping one removes all levels."""
    top, _, key = path.partition(".")
    transfer = tree.entries.get("transfer")
    if key not in BOUNDS or top not in ("transfer", "sweep") or not isinstance(transfer, Table):
        return
    for removed in (each for each in BOUNDS if top == "sweep" or each != key):
        transfer.entries.pop(removed, None)
        transfer.lines.pop(removed, None)


def apply_sets(tree: Table, sets: Sequence[str], source: str) -> list[Problem]:
    """Put every `PATH=VALUE` into the tree; returns what is wrong with those that cannot be."""
    problems: list[Problem] = []
    for words in sets:
        try:
            path, text = split_set(words, source)
            put(tree, path, parse_value(text, source, f"--set {words}"), source)
            drop_other_bound(tree, path)
        except CampaignError as error:
            problems.extend(error.problems)
    return problems


def apply_quick(tree: Table, source: str) -> None:
    """3 runs of 1 s after 200 ms of warm-up. A swept duration or number of bytes or
    requests is what the campaign asks about: it stays.
    """
    sweep = tree.entries.get("sweep")
    swept = set(sweep.entries) if isinstance(sweep, Table) else set()
    for path, text in QUICK.items():
        top, _, key = path.partition(".")
        if top in tree.entries and not isinstance(tree.entries[top], Table):
            continue  # wrong: reported when the tree is read
        if key in swept or (key == "duration" and swept.intersection(BOUNDS)):
            continue
        put(tree, path, Word(text, origin="--quick"), source)
        drop_other_bound(tree, path)
