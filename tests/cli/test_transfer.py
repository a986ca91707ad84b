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
SHORT = "duration=50ms warmup=10ms".split()


@pytest.mark.parametrize(
    ("flags", "keys"),
    [
        ("-c rcv -t 10 -P4", "rcv duration=10s streams=4"),
        ("-c root@rcv -R", "root@rcv 'pairs={sender: rcv, receiver: here}'"),
        ("-c rcv -n 1G -l 128K -w 256K", "rcv bytes=1G chunk=128K socket_buffer=256K"),
        ("-b 100M -C bbr -Z", "rate=100Mb/s congestion=bbr send=sendfile"),
        ("-A 2 -N -O 1", "warmup=1s 'pin={sender: 2}' nodelay=true"),
        ("rcv -P 4", "rcv streams=4"),
        ("root@rcv -t 1 ip=6", "root@rcv duration=1s ip=6"),
        (
            "-c rcv -R -A 0,1",
            "rcv 'pin={receiver: 0, sender: 1}' 'pairs={sender: rcv, receiver: here}'",
        ),
        (
            "-Z -F f -B 127.0.0.2 -p 5201",
            "source=f hosts.here.address=127.0.0.2 port=5201 send=sendfile",
        ),
        ("-F f -S 1 -f M -k 9", "source=f send=readwrite"),
        ("-l 10", "duration=10s"),
        ("-l 8192 -b 100M/5", "chunk=8192"),
        (
            "-H rcv -A 0,1 -D 1 -i 9,3",
            "rcv repeat.min=3 repeat.max=9",
        ),
        ("-H localhost -t TCP_SENDFILE -F f", "send=sendfile source=f"),
        ("-t 0 -b 0 -M 1000", ""),
        ("-J -V streams=2 -c localhost", "--json --full streams=2"),
        ("-H rcv -l 10 -t TCP_SENDFILE -c -C", "rcv send=sendfile duration=10s"),
        ("-H rcv -t TCP_MAERTS", "rcv 'pairs={sender: rcv, receiver: here}'"),
        ("-u --bidir -s duration=1s", "duration=1s"),
        ("-c localhost -R -t 1 --json", "duration=1s --json"),
        ("-P 4 -b 100M -6", "streams=4 rate=400Mb/s ip=6"),
        ("-w 10m -n 1g", "bytes=1G socket_buffer=10M"),
        ("-b 10m", "rate=10Mb/s"),
        ("-t TCP_RR -l 1", "request=1 response=1 duration=1s"),
        ("-H snd -l 1 -- -m 8K -s 64K,32K", "snd duration=1s chunk=8K send_buffer=64K"),
        ("-t TCP_CRR -r 128,1K", "request=128 response=1K mode=crr"),
        ("-t TCP_RR -- -r 128,1K -b 16 -D -o P50", "request=128 response=1K depth=16"),
        ("-H rcv -- -D -K reno -P 1,2 -X", "rcv nodelay=true congestion=reno port=2"),
        (
            "-H rcv -t TCP_MAERTS -T 0,1 -- -s 64K -S 32K",
            "rcv 'pairs={sender: rcv, receiver: here}' 'pin={receiver: 0, sender: 1}'"
            " receive_buffer=64K send_buffer=32K",
        ),
        (
            "-H rcv -I 95,10 -i 30,3 -P 0",
            "rcv repeat.confidence=95% repeat.precision=5% repeat.min=3 repeat.max=30",
        ),
        ("-c -C", ""),
        (
            "-T 0,1 -I 99,5 -i 10,3",
            "'pin={sender: 0, receiver: 1}' repeat.confidence=99%"
            " repeat.precision=2.5% repeat.min=3 repeat.max=10",
        ),
        (
            "-H rcv -l -1000 -I 99",
            "rcv bytes=1000 repeat.confidence=99% repeat.min=3 repeat.max=10",
        ),
        ("-P 4 -t 10s -i 0", "duration=10s streams=4"),
        ("-t 1 -B 127.0.0.1%lo -I /x.pid -w 1ms", "duration=1s"),
        (
            "-H 10.1.1.1,4 -t TCP_MAERTS -l 1 -- -m ,64K",
            "10.1.1.1 ip=4 'pairs={sender: 10.1.1.1, receiver: here}' duration=1s",
        ),
        ("-t tcp_stream -l -100M -L 127.0.0.1", "bytes=100M hosts.here.address=127.0.0.1"),
        (
            "-t TCP_RR -l 1 -b 10 -w 1ms -T ,1",
            "request=1 response=1 duration=1s 'pin={receiver: 1}'",
        ),
        ("-t TCP_STREAM -F f", "source=f send=readwrite"),
        ("-t omni -l 1 -D results -- -d send -T tcp", "duration=1s --results=results"),
        ("-p 8888 --rw=write --bs=64k --size=100m", "port=8888 chunk=64K bytes=100M"),
        ("-t 1 --fq-rate 1G", "duration=1s rate=1Gb/s"),
        ("-H 127.0.0.1 -l 1 -n 2 -v 2 -B one", "duration=1s about=one"),
        ("-r 10 -w 2 duration=1s", "warmup=2s repeat.min=10 repeat.max=10 duration=1s"),
        ("-P streams 1 8 duration=1s", "duration=1s"),
        ("-t 1 --timestamps --skip-rx-copy -P 2", "duration=1s streams=2 receive=trunc"),
    ],
)
def test_flags_of_others_are_answered_by_keys(flags: str, keys: str) -> None:
    done = call("transfer", *flags.split())
    assert (done.returncode, done.stdout) == (2, "")
    *rows, command = done.stderr.splitlines()
    assert command == f"  python -m netbench transfer {keys}".rstrip()
    assert bool(re.search("nothing(?! is needed)", done.stderr)) == (rows[-1] != "that is:")
    for flag in re.findall(r"(?:^|\s)(--?[a-zA-Z][a-zA-Z-]*)", flags.replace("--json", "")):
        assert any(row.startswith(f"  {flag} ") for row in rows), flag
    assert [row for row in rows if len(row) > 80] == []


@pytest.mark.parametrize("test", ["UDP_RR", "SCTP_STREAM"])
def test_no_command_is_offered_for_a_test_that_there_is_not(test: str) -> None:
    done = call("transfer", "-H", "rcv", "-t", test)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"-t {test}" in done.stderr
    assert "TCP" in done.stderr
    assert "netbench transfer rcv" not in done.stderr


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


def test_an_interrupt_ends_with_what_was_moved(tmp_path: Path) -> None:
    argv = netbench_argv(["transfer", "duration=60s", "warmup=10ms"])
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("netbench: interrupted\n")
    seconds = re.findall(r"- +([\d.]+) s +([\d.]+) GB", first + err)
    total = re.fullmatch(r" +0.\d+- +([\d.]+) s +([\d.]+) GB .* in all, interrupted\n", out)
    assert total
    assert total[1] == seconds[-1][0]
    assert float(total[2]) == pytest.approx(sum(float(gb) for _, gb in seconds), abs=0.02)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "h"], "the verb comes first; as iperf3 and netperf do"),
        (["transfer", "send=write", "send=sendfile"], "send is given twice"),
        (["transfer", "parallel=4"], "did you mean 'streams'?"),
        (["transfer", "source=/dev/null"], "sendfile, splice, mmap and readwrite send files"),
        (
            ["run", "c.yaml", "--runs", "5"],
            "no option --runs; `--set repeat.min=5 --set repeat.max=5`",
        ),
        (
            ["transfer", "h", "--streams", "4", "--bs=4k"],
            "--streams: streams=4 does that; --bs: chunk=4K does that",
        ),
        (["transfer", "--runtime=1"], "duration=1s does that"),
        (
            ["transfer", "--direct=0", "--ioengine", "io_uring", "--name=a"],
            "direct=off does that; --ioengine: send=uring",
        ),
        (
            ["transfer", "--size=1g", "--x"],
            "--size: bytes=1G does that; `python -m netbench help transfer` lists",
        ),
        (["transfer", "--ioengine=libaio"], "nothing of `list methods` does that"),
        (["run", "-P", "threads", "1", "8"], "a campaign's `sweep:` compares"),
        (
            ["run", "c", "--bs=4k", "-n", "x"],
            "`--set transfer.chunk=4K` does that; -n: `--set name",
        ),
        (["transfer", "request=1", "mode=crr", "rate=10/s"], "an open loop is of connections that"),
        (["rrul", "-H", "h"], "flent loads a link both ways"),
        (["transfer", "request=1", "iodepth=4"], "of requests depth"),
        (["transfer", "request=1", "rate=1000"], "of requests 1000/s"),
        (["transfer", "sink=f", "fsync=on"], "window or after, got 'on' (from fsync=on)"),
        (["run", "c.yaml", "--prepare", "x"], "`cache: cold`"),
        (["report", "r", "-i", "x"], "`compare A B`"),
        (["run", "c.yaml", "-i"], "the other cells run"),
        (["batch", "b"], "`sweep:`"),
        (["report", "r", "-o", "x"], "`report R --html F`"),
        (["--list-tests"], "`init` lists campaigns"),
    ],
)
def test_first_guesses_get_a_hint(words: list[str], said: str) -> None:
    done = call(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())


def test_a_translation_that_is_refused_says_why() -> None:
    done = call("transfer", "-P", "5000")
    assert "-P 5000  nothing: transfer.streams: expected a number" in done.stderr
    both = call("transfer", "-n", "1G", "-t", "10")
    assert "-n 1G  nothing: a run is bounded by duration or by bytes" in both.stderr
    assert call("transfer", "bytes=1M", "duration=1s").returncode == 2
