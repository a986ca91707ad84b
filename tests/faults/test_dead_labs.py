"""What a campaign in namespaces has changed of the machine itself, when all its processes died."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from netbench.result import campaign_state
from netbench.run.host_facts import own_boot_id
from tests.support.labs import ON_LABS
from tests.support.local import call, netbench_argv, out
from tests.support.running import wait_for

pytestmark = [*ON_LABS, pytest.mark.usefixtures("whole_kernel")]
VM = Path("/proc/sys/vm/stat_interval")
TEXT = """\
netbench: 1
name: dead
lab: netns
hosts: {{snd: {{}}, rcv: {{}}}}
command: {{lvl: {{apply: [sh, -c, 'echo $0 > {file}', "{{level}}"], read: [cat, {file}],
  undo: [sh, -c, 'echo $0 > {file}', "{{level}}"]}}}}
transfer: {{duration: 300ms, warmup: 0, congestion: cubic}}
settings: {{sender.sysctl.vm.stat_interval: {level}{more}}}
repeat: {{min: 200, max: 200}}
"""


@pytest.mark.parametrize("more", ["", ", sender.lvl: b"], ids=["a sysctl", "and a program"])
def test_it_is_put_back_or_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before, file = VM.read_text(), tmp_path / "level"
    file.write_text("a\n")
    level = int(before) + 1
    (tmp_path / "d.yaml").write_text(TEXT.format(file=file, level=level, more=more))
    argv = netbench_argv(["run", str(tmp_path / "d.yaml"), "--results", str(tmp_path / "r")])
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
        wait_for(
            lambda: any(each.stat().st_size for each in tmp_path.glob("r/dead/*/records.jsonl")),
            lambda: process.poll() is None,
        )
        spaces = [each.name for each in Path("/run/netns").glob(f"*run{process.pid}*")]
        inside = {pid for each in spaces for pid in out("ip", "netns", "pids", each).split()}
        os.kill(process.pid, signal.SIGSTOP)  # it would replace them
        for pid in (*inside.intersection(out("pgrep", "-f", " helper$").split()), process.pid):
            os.kill(int(pid), signal.SIGKILL)
    assert int(VM.read_text()) == level, "nobody has undone it"
    (result,) = (tmp_path / "r" / "dead").iterdir()
    assert "vm.stat_interval" in call("restore").stdout
    assert "snd: a dead campaign has left" in call("check", tmp_path / "d.yaml").stdout
    (journal,) = tmp_path.glob("state/netbench/campaigns/*/journal.jsonl")
    container = journal.read_bytes().replace(b'"machine":"', b'"machine":"of another container ')
    journal.write_bytes(container.replace(own_boot_id().encode(), b"another"))
    assert "was changed on the machine of another" in call("restore", result).stderr
    assert int(VM.read_text()) == level
    journal.write_bytes(container)
    (result / "journal.jsonl").write_bytes(container)
    if more:
        assert "snd: a dead campaign has left lvl changed" in call("resume", result).stderr
    done = call("restore", result)
    assert VM.read_text() == before
    assert "vm.stat_interval" in done.stdout + done.stderr
    assert done.returncode == (1 if more else 0)
    assert ("put back by hand" in done.stderr) == bool(more)
    assert call("restore", result).returncode == 0
    assert list(campaign_state.unfinished()) == [], "of its namespaces nothing is left"
    assert "has left" not in call("check", tmp_path / "d.yaml").stdout
