"""Wrong campaign files: every message, word by word, with its line and path."""

from __future__ import annotations

import pytest

from netbench.base.errors import CampaignError
from netbench.campaign import parse
from netbench.read.metrics import METRICS
from tests.support.hand_catalogue import catalogue

TOP = (
    "netbench, name, about, hosts, ssh_config, lab, defaults, groups, pairs, links, overlap, verify, settings, sweep, include, exclude, kernels, command, "
    "tools, repeat, order, profile, compare, soak, limit, transfer or meters"
)
TRANSFER = (
    "send, receive, source, sink, chunk, receive_chunk, align, preamble, socket_buffer, send_buffer, "
    "receive_buffer, streams, threads, pin, congestion, rate, ip, duration, bytes, warmup, cache, direct, fsync, tool, port, sample or pipe"
)
SEND = "null, write, readwrite, sendfile, splice or mmap"
RECEIVE = "null, read, trunc or splice"
CLOSING = {
    "throughput",
    *("sender_cpu", "receiver_cpu", "system_cpu"),
    *("sender_demand", "receiver_demand", "system_demand"),
}
H = "netbench: 1\nname: x\n"
BOMB = "".join(f"  b{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 6))
MANY = ", ".join(f"{i}K" for i in range(1, 102))

CASES = [
    (
        "nothing at all",
        "",
        ["1: expected a mapping that begins with `netbench: 1`, got an empty file"],
    ),
    (
        "only a comment",
        "# later\n",
        ["1: expected a mapping that begins with `netbench: 1`, got an empty file"],
    ),
    ("a list", "- a\n", ["1: expected a mapping that begins with `netbench: 1`, got a list"]),
    (
        "a word",
        "netbench\n",
        ["1: expected a mapping that begins with `netbench: 1`, got 'netbench'"],
    ),
    (
        "not YAML",
        "netbench: 1\nname: [x\nabout: y\n",
        [
            "3: this is not YAML: did not find expected ',' or ']' while parsing a flow sequence, which began on line 2"
        ],
    ),
    (
        "a tab",
        "netbench: 1\nname:\n\t- x\n",
        [
            "3: this is not YAML: found character that cannot start any token while scanning for the next token"
        ],
    ),
    (
        "an open quote",
        H + 'about: "x\n',
        [
            "4: this is not YAML: found unexpected end of stream while scanning a quoted scalar, which began on line 3"
        ],
    ),
    ("two documents", f"{H}---\n{H}", ["3: expected one YAML document, got a second one"]),
    (
        "a python tag",
        H + "about: !!python/object/apply:os.system [id]\n",
        [
            "3: about: expected a word without a tag, got the tag !!python/object/apply:os.system",
            "3: about: expected a text, got a list",
        ],
    ),
    (
        "an explicit tag",
        H + "about: !!str 5\n",
        ["3: about: expected a word without a tag, got the tag !!str"],
    ),
    (
        "a merge key",
        H + "transfer:\n  <<: {send: write}\n",
        ["4: transfer: expected a key, got the merge key <<; write each key instead"],
    ),
    (
        "an unknown alias",
        H + "about: *x\n",
        ["3: about: expected an anchor &x above the alias *x, got none"],
    ),
    (
        "a duplicate key",
        H + "transfer:\n  send: write\n  chunk: 1K\n  send: readwrite\n",
        [
            "6: transfer.send: expected each key once, got 'send' again; it is first written on line 4"
        ],
    ),
    ("a list as key", H + "[a]: 1\n", ["3: expected a word as key, got a list"]),
    (
        "deep nesting",
        f"{H}about: {'[' * 40}{']' * 40}\n",
        ["3: about[0][0]: expected at most 32 levels of nesting, got more"],
    ),
    (
        "an alias bomb",
        f"{H}settings:\n  a: &a0 [x, x, x, x, x, x, x, x, x, x]\n{BOMB}",
        ["8: settings.b4[7]: expected at most 100000 values with aliases expanded, got more"],
    ),
    (
        "a control character",
        H + "about: a\x01b\n",
        ["3: expected text, got the control character U+0001"],
    ),
    (
        "an escaped control character",
        H + 'about: "a\\0b"\n',
        ["3: about: expected text, got the control character U+0000"],
    ),
    (
        "no version",
        "name: x\n",
        ["1: netbench: missing, expected netbench: 1, the version of the file's format"],
    ),
    (
        "another version",
        "netbench: 2\nname: x\n",
        ["1: netbench: expected netbench: 1, the version of the file's format, got '2'"],
    ),
    (
        "no name",
        "netbench: 1\n",
        ["1: name: missing, expected name: a word that names the campaign and its results"],
    ),
    (
        "a bad name",
        "netbench: 1\nname: -x y\n",
        [
            "2: name: expected a name of at most 100 letters, digits, dots, dashes and underscores, such as sosend-2, got '-x y'"
        ],
    ),
    (
        "an empty name",
        "netbench: 1\nname:\n",
        [
            "2: name: expected a name of at most 100 letters, digits, dots, dashes and underscores, such as sosend-2, got nothing"
        ],
    ),
    (
        "an unknown key",
        H + "sweeep: {send: [write]}\n",
        [f"3: sweeep: unknown key, expected {TOP} (did you mean 'sweep'?)"],
    ),
    (
        "a key one level too high",
        H + "send: write\n",
        [f"3: send: unknown key, expected {TOP} (did you mean 'transfer.send'?)"],
    ),
    (
        "an unknown transfer key",
        H + "transfer:\n  socketbuffer: 1K\n",
        [
            f"4: transfer.socketbuffer: unknown key, expected {TRANSFER} (did you mean 'socket_buffer'?)"
        ],
    ),
    (
        "transfer is a word",
        H + "transfer: write\n",
        [f"3: transfer: expected a mapping with the keys {TRANSFER}, got 'write'"],
    ),
    (
        "an unknown method",
        H + "transfer: {send: sendfil}\n",
        [
            f"3: transfer.send: expected a send method ({SEND}), got 'sendfil' (did you mean 'sendfile'?)"
        ],
    ),
    (
        "an unknown receive method",
        H + "transfer: {receive: sendfile}\n",
        [f"3: transfer.receive: expected a receive method ({RECEIVE}), got 'sendfile'"],
    ),
    (
        "a size without a unit that exists",
        H + "transfer: {chunk: 64Q}\n",
        ["3: transfer.chunk: expected file or a size such as 64K, 1M or 300kB, got '64Q'"],
    ),
    (
        "a chunk of nothing",
        H + "transfer: {chunk: 0}\n",
        ["3: transfer.chunk: expected file or a size of at least 1, got '0'"],
    ),
    (
        "a time without unit",
        H + "transfer: {duration: 10}\n",
        ["3: transfer.duration: expected a time such as 200ms, 1s or 2m, got '10'"],
    ),
    (
        "no time at all",
        H + "transfer: {duration: 0}\n",
        ["3: transfer.duration: expected a time of at least 1ms, got '0'"],
    ),
    (
        "a rate without unit",
        H + "transfer: {rate: 940M}\n",
        ["3: transfer.rate: expected none or a rate such as 940Mb/s or 1.5Gb/s, got '940M'"],
    ),
    (
        "too many streams",
        H + "transfer: {streams: 1025}\n",
        [
            "3: transfer.streams: expected a number of streams, a whole number from 1 to 1024, got '1025'"
        ],
    ),
    (
        "streams in hexadecimal",
        H + "transfer: {streams: 0x10}\n",
        [
            "3: transfer.streams: expected a number of streams, a whole number from 1 to 1024, got '0x10'"
        ],
    ),
    (
        "an alignment that the engine refuses",
        H + "transfer: {align: 4K}\n",
        ["3: transfer.align: expected a size of at most 4095, got '4K'"],
    ),
    (
        "buffers beyond the engine's bounds",
        H + "transfer: {socket_buffer: 512M, send_buffer: 2G, receive_buffer: 0}\n",
        [
            "3: transfer.receive_buffer: expected default or a size of at least 1, got '0'",
            "3: transfer.send_buffer: expected default or a size of at most 1G, got '2G'",
            "3: transfer.socket_buffer: expected default or a size of at most 256M, got '512M'",
        ],
    ),
    ("ip 5", H + "transfer: {ip: 5}\n", ["3: transfer.ip: expected 4 or 6, got '5'"]),
    (
        "direct I/O without a file",
        H + "transfer: {direct: on}\n",
        ["3: transfer.direct: direct: on needs a source of files or a file as sink"],
    ),
    (
        "direct I/O in parts of sectors",
        H
        + "transfer: {send: readwrite, source: {file: /s}, sink: {file: /o}, chunk: 1000, receive_chunk: 513, direct: on}\n",
        [
            "3: transfer.chunk: direct: on needs calls of whole sectors, expected chunk to be a multiple of 512, got 1000",
            "3: transfer.receive_chunk: direct: on needs calls of whole sectors, expected receive_chunk to be a multiple of 512, got 513",
        ],
    ),
    (
        "fsync of nothing",
        H + "transfer: {fsync: window}\nsweep: {sink: [discard, {file: /o}]}\n",
        [
            "4: sweep.sink[0]: cell sink=discard: fsync: window needs sink: {file: PATH}, got discard"
        ],
    ),
    (
        "fsync at once",
        H + "transfer: {sink: {file: /o}, fsync: now}\n",
        ["3: transfer.fsync: expected none, window or after, got 'now' (did you mean 'window'?)"],
    ),
    (
        "a tepid cache",
        H + "transfer: {cache: tepid}\n",
        ["3: transfer.cache: expected warm or cold, got 'tepid'"],
    ),
    (
        "duration and bytes",
        H + "transfer: {duration: 1s, bytes: 1G}\n",
        ["3: transfer.bytes: expected duration or bytes, got both"],
    ),
    (
        "a source that is none",
        H + "transfer: {source: memroy}\n",
        [
            "3: transfer.source: expected memory, zero, {file: PATH} or {files: 60, size: 300K}, got 'memroy' (did you mean 'memory'?)"
        ],
    ),
    (
        "files without a size",
        H + "transfer: {source: {files: 60}}\n",
        ["3: transfer.source.size: missing, expected size: the size of each file, such as 300K"],
    ),
    (
        "a sink that is none",
        H + "transfer: {sink: /dev/null}\n",
        [
            "3: transfer.sink: expected discard, {file: PATH} or {file: PATH, overwrite: true}, got '/dev/null'"
        ],
    ),
    (
        "overwrite maybe",
        H + "transfer: {sink: {file: /x, overwrite: maybe}}\n",
        ["3: transfer.sink.overwrite: expected on or off, got 'maybe'"],
    ),
    (
        "a pin that is none",
        H + "transfer: {pin: {sender: first}}\n",
        ["3: transfer.pin.sender: expected a CPU, a whole number from 0 to 65535, got 'first'"],
    ),
    (
        "a range of CPUs backwards",
        H + "transfer: {pin: {sender: 3-0}}\n",
        [
            "3: transfer.pin.sender: expected a range of CPUs such as 0-3, from 0 to 65535, got '3-0'"
        ],
    ),
    (
        "a list of CPUs with what is none",
        H + "transfer: {pin: {receiver: [0-1, x]}}\n",
        ["3: transfer.pin.receiver: expected a CPU, a whole number from 0 to 65535, got 'x'"],
    ),
    (
        "a CPU in a list twice",
        H + "transfer: {pin: {receiver: [0-3, 2]}}\n",
        ["3: transfer.pin.receiver: expected each CPU once, got CPU 2 twice"],
    ),
    (
        "an empty list of CPUs",
        H + "transfer: {pin: {sender: []}}\n",
        [
            "3: transfer.pin.sender: expected a CPU, a range such as 0-3, or a list of them, got an empty list"
        ],
    ),
    (
        "more CPUs than a side can have threads",
        H + "transfer: {pin: {sender: 0-65535}}\n",
        ["3: transfer.pin.sender: expected at most 1024 CPUs, got 65536"],
    ),
    (
        "ports backwards",
        H + "transfer: {port: 5010-5000}\n",
        [
            "3: transfer.port: expected a port such as 5000 or a range such as 5000-5010, got '5010-5000'"
        ],
    ),
    (
        "a tool without a pattern",
        H + "transfer: {tool: {argv: [nc]}}\n",
        [
            "3: transfer.tool.pattern: missing, expected pattern: a regular expression with the named groups bytes and seconds, or rate"
        ],
    ),
    (
        "a pattern without groups",
        H + "transfer: {tool: {argv: [nc], pattern: '(.*)'}}\n",
        [
            "3: transfer.tool.pattern: expected a regular expression with the named groups bytes and seconds, or rate, got '(.*)'"
        ],
    ),
    (
        "a pattern that is none",
        H + "transfer: {tool: {argv: [nc], pattern: '(?P<rate>'}}\n",
        [
            "3: transfer.tool.pattern: expected a regular expression with the named groups bytes and seconds, or rate, got '(?P<rate>': missing ), unterminated subpattern at position 0"
        ],
    ),
    (
        "a method's option out of bounds",
        H + "transfer: {send: splice, source: zero, pipe: 1K}\n",
        ["3: transfer.pipe: expected a size of at least 4K, got '1K'"],
    ),
    (
        "an empty value",
        H + "limit:\n",
        ["3: limit: expected a time such as 200ms, 1s or 2m, got nothing"],
    ),
    (
        "a list where a word belongs",
        H + "transfer: {send: [write]}\n",
        [f"3: transfer.send: expected a send method ({SEND}), got a list"],
    ),
    ("verify perhaps", H + "verify: perhaps\n", ["3: verify: expected on or off, got 'perhaps'"]),
    (
        "no hosts",
        H + "hosts: {}\n",
        ["3: hosts: expected a mapping of hosts such as {here: local}, got an empty mapping"],
    ),
    (
        "a host's name",
        H + "hosts: {a b: local}\n",
        [
            "3: hosts.a b: expected a host's name of at most 63 letters, digits, dots, dashes and underscores, got 'a b'"
        ],
    ),
    (
        "a host that is nothing",
        H + "hosts: {a: }\n",
        ["3: hosts.a: expected local or a mapping with ssh, address and interface, got nothing"],
    ),
    (
        "an empty host",
        H + "hosts: {a: {}}\n",
        [
            "3: hosts.a: expected local or a mapping with ssh, address and interface, got an empty mapping"
        ],
    ),
    (
        "a remote host that is a word",
        H + "hosts: {a: root@b}\n",
        ["3: hosts.a: expected local or a mapping with ssh, address and interface, got 'root@b'"],
    ),
    (
        "an option as destination",
        H + "hosts: {a: {ssh: -oProxyCommand=x}}\n",
        [
            "3: hosts.a.ssh: expected an SSH destination such as root@snd.example, got '-oProxyCommand=x'"
        ],
    ),
    (
        "an address of every interface",
        H + "hosts: {a: {ssh: b, address: '0.0.0.0'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got 0.0.0.0, which is"
            " every address of a host: its data port would be open to all networks"
        ],
    ),
    (
        "an IPv6 address of every interface",
        H + "hosts: {a: {ssh: b, address: '::'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got ::, which is"
            " every address of a host: its data port would be open to all networks"
        ],
    ),
    (
        "an address of every interface in IPv6",
        H + "hosts: {a: {ssh: b, address: '::ffff:0.0.0.0'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got ::ffff:0.0.0.0, which is"
            " every address of a host: its data port would be open to all networks"
        ],
    ),
    (
        "a multicast address",
        H + "hosts: {a: {ssh: b, address: '224.0.0.251'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got 224.0.0.251, which is"
            " a multicast address"
        ],
    ),
    (
        "an IPv6 multicast address",
        H + "hosts: {a: {ssh: b, address: 'ff02::fb'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got ff02::fb, which is"
            " a multicast address"
        ],
    ),
    (
        "the broadcast address",
        H + "hosts: {a: {ssh: b, address: '255.255.255.255'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got 255.255.255.255, which is"
            " the broadcast address"
        ],
    ),
    (
        "a link-local address without its zone",
        H + "hosts: {a: {ssh: b, address: 'fe80::1'}}\n",
        [
            "3: hosts.a.address: expected the address of one host, got fe80::1, which is"
            " link-local and names no interface; write one that is valid on all links"
        ],
    ),
    (
        "an address that is a name",
        H + "hosts: {a: {ssh: b, address: b.example}}\n",
        [
            "3: hosts.a.address: expected an IP address such as 192.168.2.1 or fd00::1, got 'b.example'"
        ],
    ),
    (
        "a pair of hosts that the file does not name",
        H + "hosts: {snd: local, rcv: local}\npairs: [{sender: snd, receiver: rvc}]\n",
        [
            "4: pairs[0].receiver: expected the name of a host (snd or rcv), got 'rvc' (did you mean 'rcv'?)"
        ],
    ),
    (
        "half a pair",
        H + "pairs: [{sender: here}]\n",
        ["3: pairs[0].receiver: missing, expected receiver: the name of a host"],
    ),
    (
        "a pair twice",
        H + "pairs:\n- {sender: here, receiver: here}\n- {sender: here, receiver: here}\n",
        ["5: pairs[1]: expected each pair once, got here>here again"],
    ),
    (
        "two levels for one host",
        H
        + "settings: {sender.mtu: 9000}\nsweep: {receiver.mtu: [9000, 1500], sender.tso: [on], receiver.tso: [yes, off]}\n",
        [
            "4: sweep.receiver.mtu[1]: cell receiver.mtu=1500,sender.tso=on,receiver.tso=yes and 1 more: "
            "expected one level of mtu, since both ends of here>here are one machine, got 9000 for the sender and 1500 for the receiver",
            "4: sweep.receiver.tso[1]: cell receiver.mtu=9000,sender.tso=on,receiver.tso=off and 1 more: "
            "expected one level of tso, since both ends of here>here are one machine, got on for the sender and off for the receiver",
        ],
    ),
    (
        "two levels for two names of this machine",
        H + "hosts: {a: local, b: local}\nsettings:\n  tso: off\n  sender.tso: on\n",
        [
            "6: settings.sender.tso: expected one level of tso, since both ends of a>b are one machine, "
            "got on for the sender and off for the receiver"
        ],
    ),
    (
        "ip 6 over an address of ip 4",
        H + "hosts: {a: {address: 10.0.0.1}}\ntransfer: {ip: 6}\n",
        ["4: transfer.ip: ip is 6, got the address 10.0.0.1 of hosts.a"],
    ),
    (
        "hosts of two ip versions",
        H + "hosts: {a: {address: 10.0.0.1}, b: {address: 'fd00::1'}}\n",
        ["1: transfer: ip is 4, got the address fd00::1 of hosts.b"],
    ),
    (
        "an unknown factor",
        H + "sweep: {sendd: [write]}\n",
        [
            "3: sweep.sendd: unknown key, expected a key of transfer, a setting such as tso or sysctl.NAME, kernel or meters (did you mean 'send'?)"
        ],
    ),
    (
        "an unknown setting",
        H + "sweep: {sender.groo: [on]}\n",
        [
            "3: sweep.sender.groo: unknown key, expected a key of transfer, a setting such as tso or sysctl.NAME, kernel or meters (did you mean 'sender.gro'?)"
        ],
    ),
    (
        "a factor without levels",
        H + "sweep: {send: []}\n",
        ["3: sweep.send: expected a list of levels such as [a, b], got an empty list"],
    ),
    (
        "a factor with one word",
        H + "sweep: {send: write}\n",
        ["3: sweep.send: expected a list of levels such as [a, b], got 'write'"],
    ),
    (
        "a level twice",
        H + "sweep:\n  chunk:\n  - 1K\n  - 2K\n  - 1K\n",
        ["7: sweep.chunk[2]: expected each level once, got '1K' again"],
    ),
    (
        "a level of nothing",
        H + "sweep: {send: [write, ]}\nmeters: [~]\n",
        ["4: meters[0]: expected a meter (rusage, procstat, soak, tcp, flow or perf), got nothing"],
    ),
    (
        "an empty level",
        H + "sweep: {chunk: [1K, ~]}\n",
        ["3: sweep.chunk[1]: expected a level of chunk, got nothing"],
    ),
    (
        "an unknown level",
        H + "sweep: {receive: [read, tunc]}\n",
        [
            f"3: sweep.receive[1]: expected a receive method ({RECEIVE}), got 'tunc' (did you mean 'trunc'?)"
        ],
    ),
    (
        "a switch half way",
        H + "sweep: {tso: [on, of]}\n",
        ["3: sweep.tso[1]: expected on or off, got 'of' (did you mean 'off'?)"],
    ),
    (
        "bytes against a swept duration",
        H + "transfer: {bytes: 1G}\nsweep: {duration: [1s, 2s]}\n",
        ["4: sweep.duration: expected duration or bytes, got transfer.bytes too"],
    ),
    (
        "both bounds swept",
        H + "sweep: {duration: [1s], bytes: [1G]}\n",
        [
            "3: sweep.bytes[0]: cell duration=1s,bytes=1G: a run is bounded by duration or by bytes, got both"
        ],
    ),
    (
        "too many cells",
        f"{H}sweep:\n  chunk: [{MANY}]\n  receive_chunk: [{MANY}]\n",
        ["3: sweep: expected at most 10000 cells, got 10201"],
    ),
    (
        "null with a method that moves data",
        H + "sweep: {send: [write, null], receive: [read, trunc]}\n",
        [
            "3: sweep.send[1]: cell send=null,receive=read: send method null moves no data and pairs only with its like, got receive method read",
            "3: sweep.send[1]: cell send=null,receive=trunc: send method null moves no data and pairs only with its like, got receive method trunc",
        ],
    ),
    (
        "sendfile from memory",
        H + "transfer: {send: sendfile}\n",
        [
            "3: transfer.send: send method sendfile cannot take bytes from memory, expected source: file or files"
        ],
    ),
    (
        "trunc into a file",
        H + "transfer: {receive: trunc, sink: {file: /x}}\n",
        ["3: transfer.receive: receive method trunc cannot fill a file, expected sink: discard"],
    ),
    (
        "whole files from memory",
        H + "transfer: {chunk: file}\n",
        [
            "3: transfer.chunk: chunk: file needs a source of files, got memory",
            "3: transfer.chunk: chunk: file needs a send method that sends a whole file a call, got write",
        ],
    ),
    (
        "an option that no method has",
        H + "transfer: {source: zero, send: write, pipe: 64K}\n",
        ["3: transfer.pipe: pipe is an option of splice, which is no cell's method"],
    ),
    (
        "an option that no cell has",
        H + "transfer: {source: zero, pipe: 64K}\nsweep: {streams: [1, 2]}\n",
        ["3: transfer.pipe: pipe is an option of splice, which is no cell's method"],
    ),
    (
        "an option for a method without it",
        H + "transfer: {source: zero}\nsweep: {send: [splice, write], pipe: [64K]}\n",
        [
            "4: sweep.pipe[0]: cell send=write,pipe=64K: pipe is an option of splice, got send method write and receive method read"
        ],
    ),
    (
        "socket_buffer without effect",
        H + "transfer: {send_buffer: 1M, receive_buffer: 1M}\nsweep: {socket_buffer: [32K]}\n",
        [
            "4: sweep.socket_buffer[0]: cell socket_buffer=32K: send_buffer and receive_buffer are both written, so socket_buffer changes nothing"
        ],
    ),
    (
        "an exclude that matches nothing",
        H + "sweep: {chunk: [1K, 2K]}\nexclude:\n- {chunk: 3K}\n",
        [
            "5: exclude[0].chunk: this excludes nothing: expected a level of chunk (1K or 2K), got '3K'"
        ],
    ),
    (
        "an exclude of what is not swept",
        H + "sweep: {chunk: [1K, 2K]}\nexclude:\n- {chunkk: 1K}\n",
        ["5: exclude[0].chunkk: this key is not swept, expected chunk (did you mean 'chunk'?)"],
    ),
    (
        "everything excluded",
        H + "sweep: {chunk: [1K]}\nexclude:\n- {chunk: 1K}\n",
        ["4: exclude: expected at least one cell, got none: every combination is excluded"],
    ),
    (
        "an include that adds nothing",
        H + "sweep: {chunk: [1K]}\ninclude:\n- {chunk: 1K}\n",
        [
            "5: include[0]: this adds nothing: expected a key that is not swept in addition to the swept levels"
        ],
    ),
    (
        "an include twice",
        H + "sweep: {chunk: [1K]}\ninclude:\n- {chunk: 2K}\n- {chunk: 2K}\n",
        ["6: include[1]: expected each cell once, got chunk=2K again"],
    ),
    (
        "an include of an unknown key",
        H + "sweep: {chunk: [1K]}\ninclude:\n- {chunk: 1K, sned: write}\n",
        [
            "5: include[0].sned: unknown key, expected a swept key, a key of transfer, a setting, kernel or meters (did you mean 'send'?)"
        ],
    ),
    (
        "an include with a wrong level",
        H + "include:\n- {chunk: 1Q}\n",
        ["4: include[0].chunk: expected file or a size such as 64K, 1M or 300kB, got '1Q'"],
    ),
    (
        "include is a mapping",
        H + "include: {chunk: 1K}\n",
        ["3: include: expected a list of mappings, got a mapping"],
    ),
    (
        "repeat upside down",
        H + "repeat: {min: 5, max: 3}\n",
        ["3: repeat.min: expected at most repeat.max, which is 3, got 5"],
    ),
    (
        "no runs",
        H + "repeat: {min: 0}\n",
        ["3: repeat.min: expected a number of runs, a whole number from 1 to 100000, got '0'"],
    ),
    (
        "certainty",
        H + "repeat: {confidence: 100%}\n",
        [
            "3: repeat.confidence: expected a confidence from 80% to 99.9% (the range that intervals"
            " are calibrated for), such as 95%, got '100%'"
        ],
    ),
    *(
        (
            f"a confidence of {value}",
            H + f"repeat: {{confidence: {value}}}\n",
            [
                "3: repeat.confidence: expected a confidence from 80% to 99.9% (the range that"
                f" intervals are calibrated for), such as 95%, got '{value}'{hint}"
            ],
        )
        for value, hint in (
            ("50%", ""),
            ("79.9%", ""),
            ("99.91%", ""),
            ("0.5", ""),
            ("90", " (did you mean '90%'?)"),
        )
    ),
    (
        "a percentage without a sign",
        H + "repeat: {precision: 2.5}\n",
        [
            "3: repeat.precision: expected a precision above 0% and below 100%, such as 2.5%, got '2.5' (did you mean '2.5%'?)"
        ],
    ),
    (
        "no precision",
        H + "repeat: {precision: 0%}\n",
        [
            "3: repeat.precision: expected a precision above 0% and below 100%, such as 2.5%, got '0%'"
        ],
    ),
    (
        "an unknown metric",
        H + "repeat: {metrics: [throughputs]}\n",
        [
            "3: repeat.metrics[0]: expected a metric that can close cells (throughput, sender_cpu, receiver_cpu, system_cpu, sender_demand, receiver_demand or system_demand; CPU metrics also as NAME.METER), got 'throughputs' (did you mean 'throughput'?)"
        ],
    ),
    (
        "a metric by a meter that does not run",
        H + "repeat: {metrics: [sender_cpu.perf]}\n",
        ["3: repeat.metrics[0]: expected a metric by rusage or procstat, got 'sender_cpu.perf'"],
    ),
    (
        "a CPU metric without meters",
        H + "meters: []\nrepeat: {metrics: [sender_cpu]}\n",
        [
            "4: repeat.metrics[0]: expected a metric by a meter that accounts CPU time, and `meters:` has none, got 'sender_cpu'"
        ],
    ),
    (
        "an unknown meter",
        H + "meters: [rusages]\n",
        [
            "3: meters[0]: expected a meter (rusage, procstat, soak, tcp, flow or perf), got 'rusages' (did you mean 'rusage'?)"
        ],
    ),
    (
        "a meter twice",
        H + "meters: [rusage, rusage]\n",
        ["3: meters[1]: expected each meter once, got 'rusage' again"],
    ),
    (
        "meters is a word",
        H + "meters: rusage\n",
        ["3: meters: expected a list of meters such as [rusage, procstat], got 'rusage'"],
    ),
    (
        "a seed that is none",
        H + "order: {seed: -1}\n",
        ["3: order.seed: expected a seed, a whole number of at least 0, got '-1'"],
    ),
    (
        "a limit of nothing",
        H + "limit: 0\n",
        ["3: limit: expected a time of at least 1ns, got '0'"],
    ),
    (
        "compare what is not swept",
        H + "sweep: {chunk: [1K, 2K]}\ncompare: {factor: send, baseline: write}\n",
        ["4: compare.factor: expected a factor (chunk), got 'send'"],
    ),
    (
        "an unknown baseline",
        H + "sweep: {chunk: [1K, 2K]}\ncompare: {factor: chunk, baseline: 3K}\n",
        ["4: compare.baseline: expected a level of chunk (1K or 2K), got '3K'"],
    ),
    (
        "one level to compare",
        H + "sweep: {chunk: [1K]}\ncompare: {factor: chunk, baseline: 1K}\n",
        ["4: compare.factor: expected a factor of two levels or more, got chunk with one"],
    ),
    (
        "half a compare",
        H + "compare: {baseline: 1K}\n",
        ["3: compare.factor: missing, expected factor: a key of sweep"],
    ),
    (
        "an unknown setting held",
        H + "settings: {mtuu: 9000}\n",
        [
            "3: settings.mtuu: unknown key, expected a setting such as mtu, tso or sysctl.NAME (did you mean 'mtu'?)"
        ],
    ),
    (
        "a lab that is none",
        H + "lab: vmware\n",
        [
            "3: lab: expected netns, qemu or a mapping such as {kind: netns, rate: 1Gb/s}, got 'vmware'"
        ],
    ),
    (
        "a kernel without image",
        H + "kernels: {a: {initrd: x}}\n",
        ["3: kernels.a: expected one of image, deb, tree, release or git, got none"],
    ),
    (
        "a kernel from two sources",
        H + "kernels: {a: {image: /a, release: 6.1}}\n",
        ["3: kernels.a: expected one of image, deb, tree, release or git, got image and release"],
    ),
    (
        "an initrd of a package",
        H + "kernels: {a: {deb: a.deb, initrd: /b}}\n",
        ["3: kernels.a: expected initrd with image, got it with deb"],
    ),
    (
        "a way to boot that is none",
        H + "hosts: {a: {ssh: a, boot: kexek}}\n",
        [
            "3: hosts.a.boot: expected kexec, grub or a mapping such as {command: [reboot-host, '{host}', '{kernel}']}, got 'kexek' (did you mean 'kexec'?)"
        ],
    ),
    (
        "two ways to boot",
        H + "hosts: {a: {ssh: a, boot: {method: grub, command: [x]}}}\n",
        ["3: hosts.a.boot: expected one of method, qemu or command, got method and command"],
    ),
    (
        "an unknown kernel",
        H + "kernels: {vanilla: {image: /a}}\nsweep: {kernel: [vanila]}\n",
        ["4: sweep.kernel[0]: expected a kernel (vanilla), got 'vanila' (did you mean 'vanilla'?)"],
    ),
    (
        "a profile of nothing",
        H + "profile: {cells: all, seconds: 0}\n",
        ["3: profile.seconds: expected a time of at least 1ns, got '0'"],
    ),
    (
        "a profile of what changed where nothing is compared",
        H + "profile: {seconds: 5}\n",
        [
            "3: profile.cells: expected all, since the campaign has no `compare:` that says what changed, got 'changed'; write `cells: all`, or `compare:` with a factor and its baseline"
        ],
    ),
    (
        "profiles of other cells",
        H + "profile: {cells: some, frequency: 0, runs: 0}\n",
        [
            "3: profile.cells: expected cells to profile (changed or all), got 'some'",
            "3: profile.frequency: expected a number of samples a second, a whole number from 1 to 20000, got '0'",
            "3: profile.runs: expected a number of profile runs, a whole number from 1 to 100, got '0'",
        ],
    ),
]


def errors(text: str, sets: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with a file, without the file's name."""
    with pytest.raises(CampaignError) as caught:
        parse(text, "c.yaml", sets, catalogue())
    assert caught.value.exit_code == 2
    return [line.removeprefix("c.yaml:") for line in str(caught.value).splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(text, expected, id=name) for name, text, expected in CASES]
)
def test_a_wrong_file_is_told_what_is_wrong(text: str, expected: list[str]) -> None:
    assert expected == errors(text)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_closes_cells_or_is_refused_by_name(name: str) -> None:
    text = f"{H}meters: [rusage, soak]\nrepeat: {{metrics: [{name}]}}\n"
    if name in CLOSING:
        assert parse(text, "c.yaml", (), catalogue()).repeat.metrics == (name,)
        return
    (message,) = errors(text)
    assert "expected a metric that can close cells (throughput, sender_cpu" in message
    assert f"got '{name}'" in message
