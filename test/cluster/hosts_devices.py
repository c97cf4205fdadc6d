# SPDX-License-Identifier: BSD-3-Clause
"""Cases of hosts_runs.py: which network devices hosts use for a job."""
import pathlib
import re

import host_nets
from hosts_bench import expect


def says_devices(bench, address=None, device="eth0", **more):
    """A job runs, and says that each host uses the device that leads to the other."""
    address = address or bench.hosts.address
    done = bench.run(bench.command(bench.spread(1, 1), "-v", "--threads", "1",
                                   str(bench.options.examples / "heat"), "32", "3"), **more)
    if done.returncode != 0 or b"SUCCESSFUL" not in done.stdout:
        yield f"{more}: status {done.returncode}, {done.stdout!r}, {done.stderr[-300:]!r}"
    for i, name in enumerate(bench.hosts.names[:2]):
        line = f"hiroba: host {name}: rank {i}, network device {address(i + 1)} ({device})"
        if line not in done.stderr.decode():
            yield f"{more}: no line \"{line}\": {done.stderr.decode()}"


def device(bench):
    """The device that leads to the peers is chosen and said, whatever else there is; it may be
    forced; one that cannot lead there is refused."""
    yield from says_devices(bench)
    yield from says_devices(bench, HIROBA_NET="eth0")
    first, second = bench.hosts.names[:2]
    yield from says_devices(bench, HIROBA_NET=f"nosuch0,{first}:eth0,{second}:10.77.0.0/24")
    yield from says_devices(bench, HIROBA_NET="10.77.0.0/24")
    forced = bench.run(bench.command(bench.spread(1, 1), "-v", "true"), HIROBA_NET="nosuch0")
    yield from expect(bench, forced, 64, r"host \S+n[01]: HIROBA_NET=nosuch0: no device of this host")
    first = bench.run(bench.command(bench.spread(1, 1), "true"), HIROBA_NET="10.77.0.1")
    yield from expect(bench, first, 64, rf"host {bench.hosts.names[1]}: HIROBA_NET=10.77.0.1: no device")
    apart = [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("aaa0", "192.168.55.1")]
    for name, address in apart + [("tun0", "10.8.0.1")] * bool(bench.hosts.tunnels):
        alike = bench.run(bench.command(bench.spread(1, 1), "true"), HIROBA_NET=name)
        yield from expect(bench, alike, 64, rf"both have network device {address} \({name}\), which")


def several_networks(bench):
    """Hosts with two wires between them: one is chosen for the job, and the launcher, which has an
    address in each, is found by whichever leads to it."""
    hosts = bench.hosts
    hosts.add_network(78)
    other = {"address": lambda number: f"10.78.0.{number}", "device": "eth78"}
    home = ["10.77.0.100/32", "10.78.0.100/32"]
    try:
        yield from says_devices(bench, **other, HIROBA_NET="10.78.0.0/24")
        yield from says_devices(bench, **other, HIROBA_NET="eth78")
        # No way back to the first of the launcher's addresses, then to the other, for each host.
        for closed in home:
            for name in hosts.names[:2]:
                host_nets.ip("-n", name, "route", "add", "blackhole", closed)
            yield from says_devices(bench, **other, HIROBA_NET="eth78")
            for name in hosts.names[:2]:
                host_nets.ip("-n", name, "route", "del", "blackhole", closed)
    finally:
        hosts.remove_network(78)


def sent(hosts, name, device):
    """Bytes that left the host by the device."""
    shown = host_nets.ip("-n", name, "-s", "link", "show", device).stdout
    return int(re.search(r"TX:[^\n]*\n\s+(\d+)", shown)[1])


def colors(bench):
    """A device for each of ACP's two colors: what is copied is right, and both carry their part of
    it, also where two ranks of a host share memory; a device that one host lacks is told by it."""
    hosts = bench.hosts
    program = str(pathlib.Path(bench.hiroba).parent.parent / "acp" / "acp_colors")
    hosts.add_network(78)
    try:
        for places, provider in [((1, 1, 1), "udp"), ((2, 1), "auto")]:
            before = [sent(hosts, hosts.names[0], device) for device in ("eth0", "eth78")]
            done = bench.run(bench.command(bench.spread(*places), program, "2", "3", "300"),
                             HIROBA_ACP_DEVICES="10.78.0.0/24", HIROBA_PROVIDER=provider)
            if done.returncode != 0 or b"3 rounds with 2 colors on 3 ranks: right" not in done.stdout:
                yield f"{provider}: status {done.returncode}, {done.stdout!r}, {done.stderr[-300:]!r}"
            carried = [sent(hosts, hosts.names[0], device) - at
                       for device, at in zip(("eth0", "eth78"), before)]
            if min(carried) < 0.25 * sum(carried):
                yield f"{provider}: the devices carried {carried} bytes"
        lacks = bench.run(bench.command(bench.spread(1, 1, 1), program, "2", "1"),
                          HIROBA_ACP_DEVICES="10.78.0.2", HIROBA_PROVIDER="udp")
        told = lacks.stderr.decode().count("HIROBA_ACP_DEVICES=10.78.0.2: no device of this host")
        if lacks.returncode == 0 or not told:
            yield f"a device that two hosts lack: status {lacks.returncode}, {lacks.stderr[-300:]!r}"
    finally:
        hosts.remove_network(78)
