# SPDX-License-Identifier: BSD-3-Clause
"""What is run in the guest: each part of a bed is a shell script that ends with status 0 or not."""

from pathlib import Path

SETTINGS = ["verbs_1", "verbs_2", "verbs_4", "verbs_storm_2", "verbs_storm_4", "shm_verbs_2",
            "shm_verbs_4"]
KERNELS = ["ep", "is", "mg", "ft", "cg", "bt", "sp", "lu"]
UCX_NODES = [1, 2, 4]
BEDS = {"soft_roce": [*(f"conformance_{setting}" for setting in SETTINGS),
                      *(f"ucx_verbs_{nodes}" for nodes in UCX_NODES), "ucx_programs", "programs",
                      *(f"kernel_{name}" for name in KERNELS), "hosts", "misses", "colors", "latency", "figures"],
        "stock_kernel": ["info", "heat"]}

# Datagrams of rxe to its own device stay below the network device: any device will do.
SOFT_ROCE = """
ip link add d0 type dummy && ip addr add 10.0.0.1/24 dev d0 && ip link set d0 up
rdma link add rxe0 type rxe netdev d0 || exit 1
export HIROBA_NET=10.0.0.1
cd /tmp
"""

# UCX's reliable connections. Of itself it never gives a silent peer up, and refuses packets of its
# datagrams to its own device.
UCX_OVER_VERBS = SOFT_ROCE + """
export UCX_TLS=rc_verbs,ud_verbs,self UCX_UD_VERBS_ETH_DGID_CHECK=n
export UCX_RC_VERBS_RETRY_COUNT=6 UCX_RC_VERBS_TIMEOUT=100ms
"""

# An emulated machine is slow, and a test with a time limit may say so of any provider. A test that
# fails is run over udp in the same guest: it counts unless that fails as well.
CONFORMANCE = """
suite={build}/bin/test_conformance
export HIROBA_TEST_SLOWER=30
timeout {seconds} $suite --gtest_filter='{cases}/{setting}' >/tmp/out 2>&1
grep -E '^\\[( +OK|  FAILED|  PASSED|=====)' /tmp/out | sed 's/, where GetParam.*//' | sort -u
grep -q 'tests\\? from .* ran' /tmp/out || {{ tail -20 /tmp/out; exit 1; }}
worse=0
for name in $(sed -n 's/^\\[  FAILED  \\] \\([^ ,]*\\)\\/{setting}.*(.*ms)$/\\1/p' /tmp/out); do
    grep -B 12 "FAILED.*$name" /tmp/out
    if timeout {seconds} $suite --gtest_filter="$name/{beside}" >/tmp/udp 2>&1; then
        echo "$name fails over {setting} alone"
        worse=1
    else
        echo "$name fails over udp too: this machine is too slow for it"
    fi
done
exit $worse
"""

RUN_AND_COMPARE = """
failed=0
# run NODES LABEL PROGRAM...: verified, and every node took part.
run() {{
    nodes=$1; shift
    HIROBA_STATS=1 timeout {seconds} {build}/bin/hiroba run -n $nodes -t 1 {options} "$@" >/tmp/out 2>/tmp/err
    status=$?
    row=$(grep -h '^parallel_regions' /tmp/out /tmp/err)
    took_part=$(echo "$row" | awk '{{n = 0; for (i = 2; i <= NF; i++) if ($i > 0) n++; print n}}')
    if [ $status = 0 ] && grep -qiE 'VERIFICATION +(= +)?SUCCESSFUL' /tmp/out && [ "${{took_part:-0}}" -ge $nodes ]
    then echo "ok      $nodes nodes: $*: $row"
    else echo "FAILED  $nodes nodes: $*: status $status, $row"; cat /tmp/out /tmp/err | tail -20; failed=1
    fi
}}
"""


def heat_under_engines(build):
    """Each engine verifies, or is refused with a line that says what the kernel lacks."""
    script = RUN_AND_COMPARE.format(build=build, options="", seconds=120)
    script += "export HIROBA_FAULT_ENGINE=mprotect\n"
    script += f"for n in 2 4; do run $n {build}/examples/heat; done\n"
    script += "export HIROBA_FAULT_ENGINE=uffd\n"
    script += f"if {build}/bin/hiroba info | grep -q ' uffd: usable'; then\n"
    script += f"    for n in 2 4; do run $n {build}/examples/heat; done\n"
    script += f"else\n    {build}/bin/hiroba run -n 2 -t 1 {build}/examples/heat >/tmp/out 2>&1\n"
    script += "    status=$?; cat /tmp/out\n"
    script += "    [ $status = 78 ] && grep -q 'needs Linux' /tmp/out || failed=1\nfi\n"
    return script + "uname -r\nexit $failed\n"


# What the device sends for a miss: that of the host whose node has them, counted by the device for
# few and for many misses, so that all else drops out.
MISSES = """
gcc -O1 -fopenmp {here}/misses.c -o /tmp/misses || exit 1
for blocks in 100 900; do
    HIROBA_EXCLUSIVE=off HIROBA_STATS=1 timeout 200 ip netns exec h0 {build}/bin/hiroba run --hosts h0:1,h1:1 --ssh "ip netns exec" --provider verbs -t 1 /tmp/misses $blocks /proc/1/root/sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts >/tmp/out 2>/tmp/err
    [ $? = 0 ] && grep -q SUCCESSFUL /tmp/out || {{ cat /tmp/out /tmp/err; exit 1; }}
    grep -h '^read_faults\\|^fetches_by\\|^fetched_ahead' /tmp/out /tmp/err
    eval "sent_$blocks=$(sed -n 's/.*counter //p' /tmp/out)"
done
echo "packets that the device of node 1 sent for 100 and for 900 misses: $sent_100 and $sent_900"
# A notice has told where the bytes are: one list of version, block in pieces of 8 KiB, version, each
# request one packet. The rest is the barriers'.
awk "BEGIN {{ each = ($sent_900 - $sent_100) / 800; printf \\"packets for each miss: %.2f\\\\n\\", each; exit !(each > 3.9 && each < 4.6) }}"
"""

COUNTERS = """
echo device: $(cd /sys/class/infiniband/rxe0/ports/1/hw_counters && for c in *; do echo $c $(cat $c); done)
"""


# A second device of the same machine: each color's bytes go through its own.
COLORS = """
ip link add d1 type dummy && ip addr add 10.0.1.1/24 dev d1 && ip link set d1 up
rdma link add rxe1 type rxe netdev d1 || exit 1
sent() { echo "$(cat /sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts)"; }
HIROBA_VERBS_DEVICE=rxe0 HIROBA_ACP_DEVICES=rxe1 timeout 400 %(build)s/bin/hiroba run -n 3 --provider verbs \\
    %(build)s/acp/acp_colors 2 2 390 >/tmp/out 2>/tmp/err
status=$?
echo "packets of the two devices: $(sent rxe0) and $(sent rxe1)"
grep -q 'rounds with 2 colors on 3 ranks: right' /tmp/out && [ $status = 0 ] || { cat /tmp/out /tmp/err | tail -20; exit 1; }
cat /tmp/out
[ $(sent rxe1) -gt $(( $(sent rxe0) / 4 )) ]
"""


def programs_over(build, provider, bed):
    script = bed + RUN_AND_COMPARE.format(
        build=build, options=f"--provider {provider}", seconds=240)
    for name, words in (("ep", ""), ("heat", "64 20"), ("mandelbrot", ""), ("vectors", "")):
        script += f"for n in 2 4; do run $n {build}/examples/{name} {words}; done\n"
    return script + COUNTERS + "exit $failed\n"


def kernel_over_verbs(build, program, nodes, seconds):
    script = SOFT_ROCE + RUN_AND_COMPARE.format(
        build=build, options="--provider verbs", seconds=seconds)
    for number in nodes:
        script += f"run {number} {program}; cut -d' ' -f1 /proc/uptime\n"
    return script + COUNTERS + "exit $failed\n"


# Two devices on one wire in the first namespace, whose packets policy routes keep from staying
# inside, and two namespaces that have the same addresses: a device is found by its host's address.
TWO_HOSTS = """
ip link add v0 mtu 4200 type veth peer name v1 mtu 4200
ip addr add 10.0.0.1/32 dev v0; ip addr add 10.0.0.2/32 dev v1
ip link set v0 up; ip link set v1 up
for f in all v0 v1; do
    echo 1 >/proc/sys/net/ipv4/conf/$f/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/$f/rp_filter
done
for f in v0 v1; do echo 1 >/proc/sys/net/ipv4/conf/$f/arp_ignore; done
ip rule add pref 1 iif v0 lookup local; ip rule add pref 2 iif v1 lookup local
ip rule add pref 3 oif v0 lookup 100; ip rule add pref 4 oif v1 lookup 101
ip route add 10.0.0.2 dev v0 src 10.0.0.1 table 100
ip route add 10.0.0.1 dev v1 src 10.0.0.2 table 101
ip rule add pref 10 lookup local; ip rule del pref 0
rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1 || exit 1
mkdir -p /run/netns
ip netns add h0; ip netns add h1
ip -n h0 link add e0 type veth peer name e0 netns h1
for i in 0 1; do
    ip -n h$i link set lo up; ip -n h$i addr add 10.0.0.$((i+1))/24 dev e0; ip -n h$i link set e0 up
done
cd /tmp
"""

HOSTS = """
failed=0
job() {{ HIROBA_STATS=1 timeout {seconds} ip netns exec h0 {build}/bin/hiroba run --ssh "ip netns exec" "$@" >/tmp/out 2>/tmp/err; }}
# Right, all nodes took part, and what went between hosts went by both devices.
check() {{
    status=$?
    row=$(grep -h '^parallel_regions' /tmp/out /tmp/err)
    took_part=$(echo "$row" | awk '{{n = 0; for (i = 2; i < NF; i++) if ($i > 0) n++; print n}}')
    sent="$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts) $(cat /sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts)"
    if [ $status = 0 ] && grep -q 'VERIFICATION SUCCESSFUL' /tmp/out && [ "${{took_part:-0}}" = $2 ]
    then echo "ok      $1: $row; packets of the two devices until now: $sent"
    else echo "FAILED  $1: status $status, $row; packets $sent"; tail -n 20 /tmp/out; tail -n 20 /tmp/err; failed=1
    fi
}}
cut_wire() {{ tc qdisc add dev v0 root netem loss 100%; tc qdisc add dev v1 root netem loss 100%; }}
heal_wire() {{ tc qdisc del dev v0 root; tc qdisc del dev v1 root; }}
heat={build}/examples/heat
job --hosts h0:1,h1:1 --provider verbs -t 1 $heat 64 20; check "verbs, 1 node a host" 2
job --hosts h0:2,h1:2 --provider shm+verbs -t 1 $heat 64 20; check "shm+verbs, 2 nodes a host" 4
(sleep 6; cut_wire; echo "cut"; sleep 5; heal_wire; echo "healed") &
job --hosts h0:1,h1:1 --provider verbs -t 1 $heat 64 400; check "a wire cut for 5 s" 2
wait
before=$(cut -d. -f1 /proc/uptime)
(sleep 6; cut_wire) &
HIROBA_PEER_TIMEOUT=5 job --hosts h0:1,h1:1 --provider verbs -t 1 $heat 64 4000
status=$?
if [ $status = 78 ] && grep -q 'node [01] is lost' /tmp/err
then echo "ok      a wire cut for ever: status 78 after $(($(cut -d. -f1 /proc/uptime) - before)) s: $(grep -m1 lost /tmp/err)"
else echo "FAILED  a wire cut for ever: status $status"; tail -20 /tmp/err; failed=1
fi
wait
heal_wire
exit $failed
"""


def scripts(bed, only, build, programs, nodes, seconds):
    """{part: script}; a part that `only` names, or all of the bed. A kernel may take `seconds`."""
    wanted = [part for part in BEDS[bed] if only in ("", part)]
    if not wanted:
        raise SystemExit(f"guest: bed {bed} has no part {only}; there is {' '.join(BEDS[bed])}")
    found = {}
    for part in wanted:
        kind, _, rest = part.partition("_")
        if kind == "conformance":
            # A provider whose connections do not break, on as many nodes.
            beside = rest.replace("shm_verbs", "auto").replace("verbs_storm", "verbs") \
                if "shm" in rest or "storm" in rest else rest.replace("verbs", "udp")
            found[part] = SOFT_ROCE + CONFORMANCE.format(
                build=build, setting=rest, beside=beside, cases="*", seconds=1200)
        elif part == "programs":
            found[part] = programs_over(build, "verbs", SOFT_ROCE)
        elif part == "ucx_programs":
            found[part] = programs_over(build, "ucx", UCX_OVER_VERBS)
        elif part.startswith("ucx_verbs"):
            nodes_of_part = part.rpartition("_")[2]
            found[part] = UCX_OVER_VERBS + CONFORMANCE.format(
                build=build, setting=f"ucx_{nodes_of_part}", beside=f"udp_{nodes_of_part}", cases="*",
                seconds=1200)
        elif kind == "kernel":
            if programs is not None:
                found[part] = kernel_over_verbs(build, programs.resolve() / f"{rest}.S", nodes, seconds)
        elif part == "hosts":
            found[part] = TWO_HOSTS + HOSTS.format(build=build, seconds=300)
        elif part == "misses":
            found[part] = TWO_HOSTS + MISSES.format(build=build, here=Path(__file__).resolve().parent)
        elif part == "colors":
            found[part] = SOFT_ROCE + COLORS % {"build": build}
        elif part == "latency":
            tool = Path(__file__).resolve().parents[2] / "bench/beside_perftest.py"
            found[part] = SOFT_ROCE + f"python3 {tool} --build {build} --tool ib --rounds 3\n"
        elif part == "figures":
            tool = Path(__file__).resolve().parents[2] / "bench/paper_figures.py"
            found[part] = SOFT_ROCE + (
                f"python3 {tool} --hiroba {build}/bin/hiroba --providers verbs --repeat 4 --minutes 110 "
                "--milliseconds 50 --threads 1 2 4 --sizes 8 4096 1048576 --out /tmp/figures layer "
                "&& cat /tmp/figures/layer_verbs.csv\n")
        elif part == "info":
            found[part] = f"{build}/bin/hiroba info\n"
        else:
            found[part] = heat_under_engines(build)
    return found
