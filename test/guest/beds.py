# SPDX-License-Identifier: BSD-3-Clause
"""What is run in the guest: each part of a bed is a shell script that ends with status 0 or not."""

from pathlib import Path

BEDS = {"soft_roce": ["conformance_1", "conformance_2", "conformance_4", "programs", "latency"],
        "stock_kernel": ["info", "heat"]}

# Datagrams of rxe to its own device stay below the network device: any device will do.
SOFT_ROCE = """
ip link add d0 type dummy && ip addr add 10.0.0.1/24 dev d0 && ip link set d0 up
rdma link add rxe0 type rxe netdev d0 || exit 1
export HIROBA_NET=10.0.0.1
cd /tmp
"""

# An emulated machine is slow, and a test with a time limit may say so of any provider. A test that
# fails is run over udp in the same guest: it counts unless that fails as well.
CONFORMANCE = """
suite={build}/bin/test_conformance
$suite --gtest_filter='*/verbs_{nodes}' >/tmp/out 2>&1
grep -E '^\\[( +OK|  FAILED|  PASSED|=====)' /tmp/out | sed 's/, where GetParam.*//' | sort -u
grep -q 'tests from .* ran' /tmp/out || exit 1
worse=0
for name in $(sed -n 's/^\\[  FAILED  \\] \\([^ ,]*\\)\\/verbs_.*(.*ms)$/\\1/p' /tmp/out); do
    grep -B 12 "FAILED.*$name" /tmp/out
    if $suite --gtest_filter="$name/udp_{nodes}" >/tmp/udp 2>&1; then
        echo "$name fails over verbs alone"
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


def programs_over_verbs(build, programs):
    script = SOFT_ROCE + RUN_AND_COMPARE.format(
        build=build, options="--provider verbs", seconds=240)
    for name, words in (("ep", ""), ("heat", "64 20"), ("mandelbrot", ""), ("vectors", "")):
        script += f"for n in 2 4; do run $n {build}/examples/{name} {words}; done\n"
    if programs is not None:
        for name in ("ep", "is", "mg", "ft", "cg", "bt", "sp", "lu"):
            script += f"run 2 {programs.resolve()}/{name}.S\n"
    return script + ("echo device: $(cd /sys/class/infiniband/rxe0/ports/1/hw_counters && "
                     "for c in sent_pkts rcvd_pkts rdma_sends rdma_recvs retry_exceeded_err; do "
                     "echo $c $(cat $c); done)\nexit $failed\n")


def scripts(bed, only, build, programs):
    """{part: script}; a part that `only` names, or all of the bed."""
    wanted = [part for part in BEDS[bed] if only in ("", part)]
    if not wanted:
        raise SystemExit(f"guest: bed {bed} has no part {only}; there is {' '.join(BEDS[bed])}")
    found = {}
    for part in wanted:
        if part.startswith("conformance_"):
            nodes = part.removeprefix("conformance_")
            found[part] = SOFT_ROCE + CONFORMANCE.format(build=build, nodes=nodes)
        elif part == "programs":
            found[part] = programs_over_verbs(build, programs)
        elif part == "latency":
            tool = Path(__file__).resolve().parents[2] / "bench/beside_perftest.py"
            found[part] = SOFT_ROCE + f"python3 {tool} --build {build} --tool ib --rounds 3\n"
        elif part == "info":
            found[part] = f"{build}/bin/hiroba info\n"
        else:
            found[part] = heat_under_engines(build)
    return found
