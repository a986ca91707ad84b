"""What a bundle's README says: what it holds, what measured it, and how to go on with it."""

from __future__ import annotations

from netbench.base.control_characters import escape_controls
from netbench.base.json_lines import cannot_read
from netbench.base.names import shell_word
from netbench.base.opening import read_inside
from netbench.report.build import Report
from netbench.report.numbers import count
from netbench.result.bundles import inside

_TEXT = """\
{name}: {runs}, begun {first} UTC, the last of them {last} UTC.
Measured by netbench {engine}.

records.jsonl   the raw counters of each run; every number comes from them
facts.json      the hosts
campaign.yaml   the campaign, which repeats it
report/         what was made of these: the report, the letter, tables, plots

    unzip {file}
    python -m netbench report {folder}
    python -m netbench compare {folder} ANOTHER_RESULT
    less {folder}/campaign.yaml    # which may name commands: read it first
    python -m netbench run {folder}/campaign.yaml
"""
_BEGUN = "# effective campaign of:"


def about(report: Report, file: str) -> str:
    """The text, with `file` as the bundle's name."""
    result = report.source.result
    engines = dict.fromkeys(
        f"{entry.engine} (hash {entry.facts.get('engine_hash') or 'not read'})"
        for entries in result.hosts.values()
        for entry in entries
    )
    started = [f"{time:%Y-%m-%d %H:%M:%S}" for time in result.runs["started"]]
    text = _TEXT.format(
        name=result.name,
        runs=count(len(started), "run"),
        first=min(started, default="never"),
        last=max(started, default="never"),
        engine=", ".join(engines) or "of an unknown version: facts.json is missing",
        file=shell_word(file),
        folder=shell_word(inside(result.path)),
    )
    of_campaign = result.path / "campaign.yaml"
    try:
        options = read_inside(of_campaign).decode("utf-8", "replace").partition("\n")[0]
    except OSError as error:
        raise cannot_read(of_campaign, error) from error
    if options.startswith(_BEGUN):
        text += f"\nIt was begun with:{escape_controls(options.removeprefix(_BEGUN))}\n"
    return text
