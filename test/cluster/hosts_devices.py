# SPDX-License-Identifier: BSD-3-Clause
"""Cases of hosts_runs.py: which network device hosts use for a job."""
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
