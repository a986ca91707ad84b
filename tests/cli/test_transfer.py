"""The verb `transfer`: to a host, with another program's flags, and cut short."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.local import call, netbench_argv
from tests.support.sshd import Bed, bed, needs_sshd, tmp_path

__all__ = ["bed", "tmp_path"]
HERE = "nothing is needed: without a host both ends are here"
NONE = "nothing that is known: `transfer --help` lists keys"
PLAIN = "nothing is needed: that is what transfer does"
SIZED = "nothing is needed: -r makes requests"
REVERSED = "'pairs={sender: r, receiver: here}'"
OVER = "(over and over, once with bytes= its size)"
SHORT = "duration=50ms warmup=10ms".split()


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What campaigns of other tests have left is told."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("flags", "does"),
    [
        ("-c rcv -t 10 -P4", ["the host: rcv", "duration=10s", "streams=4"]),
        (
            "root@rcv -R -l 8192",
            ["the host: root@rcv", "'pairs={sender: rcv, receiver: here}'", "chunk=8192"],
        ),
        ("-c localhost -R", [HERE, HERE]),
        ("-c rcv%lo rtt", ["the host: rcv (no key binds to a device)", NONE]),
        ("-b 0 -b 10m", ["nothing is needed: a sender sends all it can", "rate=10Mb/s"]),
        ("-P 4 -b 1g", ["streams=4", "nothing: rate= is of all streams, theirs of each"]),
        ("-w 10mB -n 1g -T 10m", ["socket_buffer=10M", "bytes=1G", "about=10m"]),
        (
            "-c r -A 2 -ZR4",
            ["the host: r", "'pin={receiver: 2}'", "send=sendfile", REVERSED, "ip=4"],
        ),
        ("-F f -J -V", [f"source=f send=readwrite {OVER}", "--json", "--full"]),
        ("-F f -Z -R -c r", ["sink=f", "send=sendfile", REVERSED, "the host: r"]),
        ("--time=1 --results d", ["duration=1s", "--results=d"]),
        (
            "-t --udp 5",
            ["nothing: it has no value here", "nothing: a run moves data one way, over TCP", NONE],
        ),
        ("--foo 5 ip=4 --bs 4k", [NONE, "the key chunk"]),
        ("-l 10 -n 2", ["duration=10s", NONE]),
        ("-l -1M", ["bytes=1M"]),
        ("-c -C", ["nothing is needed: the CPUs of both ends are in every answer"] * 2),
        (
            "-H a -H b,6",
            [
                "the host: a",
                "nothing: a run has one other end (a campaign has more: `hosts:`, `pairs:`)",
            ],
        ),
        (
            "-H b,inet6 -L fd00::1,inet6 -t tcp_rr -- -D -b 2",
            [
                "ip=6 the host: b",
                "hosts.here.address=fd00::1",
                "request=1 response=1",
                "nothing is needed: requests are sent without Nagle's delay",
                "depth=3",
            ],
        ),
        ("-t TCP_STREAM -- -M 7,8", [PLAIN, "receive_chunk=7"]),
        (
            "-t TCP_RR -- -b 0 -s 1K",
            ["request=1 response=1", "depth=1", "send_buffer=1K; nothing for its receive buffer"],
        ),
        ("--cpus_allowed 0-1 --ioengine net", ["the key pin", PLAIN]),
        ("-H h -t TCP_RR -- -r 1,2k", ["the host: h", SIZED, "request=1 response=2KB"]),
        ("-t TCP_CRR -l -9", ["mode=crr request=1 response=1", "requests=9"]),
        ("-t omni -N -s 2 -- -d RR -T tcp", [PLAIN, NONE, NONE, "request=1 response=1", PLAIN]),
        ("-t TCP_SENDFILE -F f,g", ["send=sendfile", "source=f"]),
        ("-t TCP_STREAM -F f -- -D -m 1", [PLAIN, NONE, "nodelay=true", "chunk=1"]),
        (
            "-t TCP_MAERTS -H h -T 0 -- -s 1K,2K -S 3K,4K -m 5,6 -M 7 -K reno, -P ,9",
            [
                "'pairs={sender: h, receiver: here}'",
                "the host: h",
                "'pin={sender: 0, receiver: 0}'",
                "receive_buffer=2K",
                "send_buffer=3K",
                "chunk=6",
                "receive_chunk=7",
                "nothing: it has no value here",
                "port=9",
            ],
        ),
        (
            "-I 99,5 -i 9,3",
            ["repeat.confidence=99% repeat.precision=2.5%", "repeat.min=3 repeat.max=9"],
        ),
        ("-I 95,", ["repeat.confidence=95% repeat.min=3 repeat.max=10"]),
    ],
)
def test_each_word_of_others_has_a_row(flags: str, does: list[str]) -> None:
    done = call("transfer", *flags.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert [line for line in done.stderr.splitlines() if len(line) > 80] == []
    lines = re.sub("\n {6,}", " ", done.stderr).splitlines()[1:]
    rows = [re.split(" {2,}", line.strip(), maxsplit=1) for line in lines if line[0] == " "]
    assert [row[1] for row in rows] == does
    words = [word for word in flags.split() if word[0] != "-" and "=" not in word]
    assert {*words} <= {*" ".join(row[0] for row in rows).split()}


@pytest.mark.root
@needs_sshd
def test_a_host_gets_data_where_its_connection_goes(bed: Bed) -> None:
    server = bed.serve()
    jump = f"ssh -F {bed.config} -W 127.0.0.1:{server.port} box"
    jumped = bed.alias(server, name="jumped", more=f"ProxyCommand {jump}")
    bed.configure(bed.alias(server) + jumped)
    words = [f"ssh_config={bed.config}", *SHORT, "--results", bed.folder]
    done = call("transfer", "box", *words)
    assert done.returncode == 0, done.stderr
    (file,) = bed.folder.glob("transfer/*/campaign.yaml")
    written = yaml.safe_load(file.read_text())
    far = {"ssh": "box", "address": "127.0.0.1"}
    assert written["hosts"] == {"here": {"address": "127.0.0.1"}, "box": far}
    done = call("transfer", "jumped", *words)
    assert (done.returncode, "add hosts.jumped.address=ADDRESS" in done.stderr) == (2, True)
    address = "hosts.jumped.address=127.0.0.1"
    done = call("transfer", "jumped", *words, address, "pairs={sender: jumped, receiver: here}")
    assert done.returncode == 0, done.stderr
    done = call("transfer", "box", "rcv", *words)
    assert (done.returncode, "expected one host" in done.stderr) == (2, True)


@pytest.mark.parametrize("address", ["fd00::1", "x@::1"])
def test_a_host_may_be_an_address(tmp_path: Path, address: str) -> None:
    """Here one where no SSH server is."""
    (config := tmp_path / "config").write_text("Port 9\n")
    done = call("transfer", address, f"ssh_config={config}", *SHORT)
    assert (done.returncode, done.stderr.startswith("netbench: there")) == (1, True), done.stderr


@pytest.mark.parametrize(("more", "what"), [([], "GB"), (["request=1"], "requests")])
def test_an_interrupt_ends_with_what_was_moved(tmp_path: Path, more: list[str], what: str) -> None:
    argv = netbench_argv(["transfer", "duration=60s", "warmup=10ms", *more])
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("netbench: interrupted\n")
    moved = rf"- +([\d.]+) s +([\d.]+) {what} "
    seconds = re.findall(moved, first + err)
    total = re.fullmatch(rf" +0.\d+{moved}.* in all, interrupted\n", out)
    assert total
    assert total[1] == seconds[-1][0]
    assert float(total[2]) == pytest.approx(sum(float(n) for _, n in seconds), abs=0.02)
    assert float(total[2]) > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "h"], "the verb comes first; as iperf3 and netperf do"),
        (["--list-tests"], "the verb comes first; --list-tests: the verbs init and list"),
        (["transfer", "send=write", "send=sendfile"], "send is given twice"),
        (["transfer", "bytes=1M", "duration=1s"], "got both; give one"),
        (["transfer", "parallel=4"], "did you mean 'streams'?"),
        (["transfer", ""], "expected one host, an SSH destination, and keys as KEY=VALUE, got ''"),
        (["transfer", "source=/dev/null"], "sendfile, splice, mmap and readwrite send files"),
        (["transfer", "request=1", "mode=cc", "connections=1025"], "each has a thread, expected 1"),
        (["transfer", "request=1", "rate=1000"], "of requests 1000/s"),
        (["transfer", "request=1", "rate=1/s", "wait=block"], "an open loop waits for no response"),
        (["transfer", "sink=f", "fsync=on"], "window or after, got 'on' (from fsync=on)"),
        (["transfer", "-P", "5000"], "-P 5000 nothing: transfer.streams: expected a number of"),
        (["transfer", "-n", "1", "-t", "1"], "together they are refused: a run is bounded by"),
        (["transfer", "-P4", "streams=2"], "together they are refused: streams is given twice"),
        (["transfer", "-m"], "-m nothing that is known: `transfer --help` lists keys"),
        (["transfer", "--foo", "ip=7"], "together they are refused: transfer.ip: expected 4 or 6"),
        (["transfer", "-t1"], "`python -m netbench transfer [HOST] KEY=VALUE...`"),
        (
            ["run", "c", "--runs", "5", "--bs=4k", "--y"],
            "run has no option --runs --bs=4k --y; --runs: the keys repeat.min and repeat.max"
            " (--set); --bs=4k: the key transfer.chunk (--set); `python -m netbench help run`",
        ),
        (["run", "c", "--nodelay"], "--nodelay: the key transfer.nodelay (--set)"),
        (["plan", "c", "--host", "h"], "--host: the key hosts of the file; `python"),
        (["run", "c", "-P", "4"], "run has no option -P; `python -m netbench help run` lists"),
        (["run", "a", "b"], "b is one word too many; it takes one campaign file"),
        (["report", "r", "-o", "x", "--bs=4k"], "-o: --html, --csv, --markdown, --json; `py"),
        (["rport", "r"], "did you mean report?"),
    ],
)
def test_first_guesses_get_a_hint(words: list[str], said: str) -> None:
    done = call(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
