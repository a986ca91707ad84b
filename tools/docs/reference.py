"""What pages can ask for by `<!-- generated: NAME -->`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.docs import campaign_file, catalogues, command_line, python_api, record_types

GENERATED: Mapping[str, Callable[[], str]] = {
    "cautions": catalogues.cautions,
    "campaign-keys": campaign_file.keys,
    "command-line": command_line.verbs,
    "facts": catalogues.facts,
    "meters": catalogues.meters,
    "metrics": catalogues.metrics,
    "python-api": python_api.reference,
    "record-types": record_types.records,
    "journal-entries": record_types.journal_entries,
    "other-files": record_types.other_files,
    "receive-methods": catalogues.receive_methods,
    "send-methods": catalogues.send_methods,
    "settings": catalogues.settings,
}
