# SPDX-License-Identifier: BSD-3-Clause
"""Programs that not_tuned_for.py measures: where each comes from, how it is built, how it is run, what its answer is, and how many
times libgomp's seconds it may take.

A clone of github.com/OWNER/NAME lies at SOURCES/NAME, as `git clone` names it. Nothing is written there: programs are built in copies
below SOURCES/bin.
"""
import dataclasses
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/cluster"))
from debian_programs import PROTEIN, write_families  # noqa: E402

OURS = ROOT / "bench/openmp"
OUR_OWN = ""  # the repository of programs in bench/openmp
DEBIAN = "Debian"
FLAGS = "-O3 -fopenmp"


@dataclasses.dataclass(frozen=True)
class Build:
    repository: str            # OWNER/NAME
    folder: str = ""           # of it; copied to where the command runs
    command: str = ""          # of the shell
    product: str = ""          # in the copy


@dataclasses.dataclass(frozen=True)
class Figure:
    name: str                  # as docs/results/not_tuned_for.csv has it
    bound: float               # times libgomp, at most
    seconds: str = ""          # what the program tells, its only group; "": the whole process
    scale: float = 1.0         # of what it tells, to seconds
    one_thread: bool = False   # beside one thread of libgomp
    once: str = ""             # figures with the same word count as one in the mean of all


@dataclasses.dataclass(frozen=True)
class Row:
    """A program as it is run. `{threads}`, `{inputs}`, in arguments: how many there are, and the folder of input_files()."""
    program: str               # a key of BUILDS
    arguments: str
    figures: tuple
    right: str = ""            # what its own verification prints, exactly once
    same: tuple = ()           # expressions whose group, a number, is as with libgomp
    files: tuple = ()          # that are as with libgomp; "stdout": without the lines that match `unlike`
    unlike: str = ""
    tolerance: float = 0.0     # of numbers in files and `same`, relative
    sound: Callable = None     # says of a run's folder what is wrong, or "": where right answers differ
    status: int = 0            # with which it ends
    # Of a run that is checked and not timed, where the check would take time or change what is measured.
    check_program: str = ""
    check_arguments: str = ""
    long: bool = False         # minutes a run


def npb_builds():
    cpp = {(kernel, size) for kernel, size in [(k, "A") for k in "EP CG MG FT IS BT LU".split()] + [(k, "W") for k in ("BT", "SP", "LU")]}
    for kernel, size in sorted(cpp):
        yield f"npb_cpp_{kernel}.{size}", Build("GMAP/NPB-CPP", "NPB-OMP",
                                                f"make {kernel} CLASS={size} 'CFLAGS={FLAGS}' 'CLINKFLAGS={FLAGS}'", f"bin/{kernel.lower()}.{size}")
    for kernel in "CG MG FT IS BT LU SP".split():
        yield f"npb_c_{kernel}.A", Build(
            "benchmark-subsetting/NPB3.0-omp-C", "",
            f"mkdir -p bin && cp config/make.def.template config/make.def && make {kernel} CLASS=A CC=gcc CLINK=gcc C_LIB=-lm 'CFLAGS={FLAGS} -w' "
            f"'CLINKFLAGS={FLAGS}'", f"bin/{kernel.lower()}.A")


def rodinia(folder, command, product):
    return Build("yuhc/gpu-rodinia", f"openmp/{folder}", command, product)


BUILDS = {
    **dict(npb_builds()),
    **{f"gap_{kernel}": Build("sbeamer/gapbs", "", f"g++ -std=c++11 {FLAGS} src/{kernel}.cc -o {kernel}", kernel)
       for kernel in "bfs cc pr sssp bc tc".split()},
    "nw": rodinia("nw", f"g++ {FLAGS} needle.cpp -o nw", "nw"),
    "backprop": rodinia("backprop", f"gcc -w {FLAGS} *.c -lm -o backprop", "backprop"),
    "backprop_answer": rodinia(
        "backprop", f"gcc -w {FLAGS} -I. *.c {OURS}/backprop_answer.c -Wl,--wrap=bpnn_free -lm -o backprop", "backprop"),
    "srad": rodinia("srad/srad_v2", f"g++ -w {FLAGS} srad.cpp -o srad", "srad"),
    "srad_answer": rodinia("srad/srad_v2", f"g++ -w {FLAGS} -DOUTPUT srad.cpp -o srad", "srad"),
    "pathfinder": rodinia("pathfinder", f"g++ -w {FLAGS} pathfinder.cpp -o pathfinder", "pathfinder"),
    "streamcluster": rodinia("streamcluster", f"g++ -w {FLAGS} streamcluster_omp.cpp -o streamcluster", "streamcluster"),
    "hotspot": rodinia("hotspot", f"g++ -w {FLAGS} hotspot_openmp.cpp -o hotspot", "hotspot"),
    "lud": rodinia("lud", f"gcc -w {FLAGS} -Icommon omp/lud.c omp/lud_omp.c common/common.c -lm -o lud.bin", "lud.bin"),
    "adi": Build(OUR_OWN, "", f"gcc {FLAGS} {OURS}/adi.c -o adi", "adi"),
    "own_data": Build(OUR_OWN, "", f"gcc {FLAGS} {OURS}/own_data.c -o own_data", "own_data"),
    "lulesh": Build("LLNL/LULESH", "", f"g++ -w {FLAGS} -DUSE_MPI=0 *.cc -o lulesh", "lulesh"),
    "comd": Build("ECP-copa/CoMD", "src-openmp",
                  f"bash generate_info_header CoMD gcc '' '' && gcc -std=c99 -w {FLAGS} -DDOUBLE *.c -lm -o comd", "comd"),
    "hpccg": Build("Mantevo/HPCCG", "", f"g++ -w {FLAGS} -DUSING_OMP -DWALL *.cpp -o hpccg", "hpccg"),
    "xsbench": Build("ANL-CESAR/XSBench", "openmp-threading", f"gcc -std=gnu99 -w {FLAGS} -DOPENMP *.c -lm -o xsbench", "xsbench"),
    "stream": Build("jeffhammond/STREAM", "", f"gcc {FLAGS} stream.c -o stream", "stream"),
    "clustalo": Build(DEBIAN, product="clustalo"),
}

NPB_SECONDS = r"Time in seconds\s*=\s*([\d.]+)"
NPB_RIGHT = r"Verification\s*=\s*SUCCESSFUL"
CPP = "C++ port of NAS (NPB-CPP)"


def npb(name, program, kernel, size, bound, long=False):
    # The C port's IS declares no timer_read(), so what it tells is no time.
    seconds = "" if (program, kernel) == ("npb_c", "IS") else NPB_SECONDS
    return Row(f"{program}_{kernel}.{size}", "", (Figure(f"{name} {kernel}, class {size}", bound, seconds),), right=NPB_RIGHT, long=long)


def gap(kernel, scale):
    name, program = f"GAP {kernel} -g {scale}", f"gap_{kernel}"
    figures = (Figure(f"{name}: a trial", 3, r"Average Time:\s*([\d.]+)"),
               Figure(f"{name}: the graph is built", 3, r"Build Time:\s*([\d.]+)", one_thread=True, once="GAP's builder"))
    if kernel == "tc":  # its verification takes minutes
        return Row(program, f"-g {scale} -n 5 -a", figures, same=(r"^(\d+) triangles",))
    return Row(program, f"-g {scale} -n 5", figures, right=r"Verification:\s*PASS", check_program=program,
               check_arguments=f"-g {scale} -n 1 -v")


def points_of_centers(folder):
    """streamcluster adds to shared sums without a lock, so its centers differ, with libgomp too; but each point has one."""
    lines = (folder / "centers.txt").read_text().splitlines()
    points = sum(float(weight) for weight in lines[1::4])
    return "" if points == 8192 else f"{points:g} of 8192 points have a center"


def adi(edge, steps, bound):
    return Row("adi", f"{edge} {steps}", (Figure(f"ADI sweeps, {edge}³, {steps} steps", bound, r"^seconds ([\d.]+)"),),
               same=(r"^sum (\S+)",))


ROWS = (
    *(npb(CPP, "npb_cpp", kernel, "A", bound) for kernel, bound in (("EP", 1.02), ("CG", 1.25), ("MG", 1.3), ("FT", 1.8), ("IS", 2))),
    *(npb(CPP, "npb_cpp", kernel, "W", bound) for kernel, bound in (("BT", 2), ("SP", 5), ("LU", 3))),
    *(npb(CPP, "npb_cpp", kernel, "A", 1.6, long=True) for kernel in ("BT", "LU")),
    *(npb("C port of NAS", "npb_c", kernel, "A", bound) for kernel, bound in (("CG", 1.15), ("MG", 1.2), ("FT", 1.5), ("IS", 1.4))),
    *(npb("C port of NAS", "npb_c", kernel, "A", bound, long=True) for kernel, bound in (("BT", 1.6), ("LU", 1.6), ("SP", 6))),
    *(gap(kernel, 18) for kernel in "bfs cc pr sssp bc".split()),
    gap("tc", 16),
    Row("nw", "4096 10 {threads}", (Figure("Rodinia nw, 4096", 5, r"Total time: ([\d.]+)"),), files=("result.txt",)),
    Row("backprop", "655360", (Figure("Rodinia backprop, 655360", 2.5),), files=("stdout",), tolerance=1e-4,
        check_program="backprop_answer", check_arguments="655360"),
    Row("srad", "2048 2048 0 127 0 127 {threads} 0.5 10", (Figure("Rodinia srad_v2, 2048²", 1.3),), files=("stdout",),
        check_program="srad_answer", check_arguments="2048 2048 0 127 0 127 {threads} 0.5 10"),
    Row("pathfinder", "100000 1000", (Figure("Rodinia pathfinder, 100000 x 1000", 1.2),), files=("stdout",), unlike="timer:"),
    Row("streamcluster", "10 20 32 8192 8192 1000 none centers.txt {threads}",
        (Figure("Rodinia streamcluster, 8192 points", 1.3, r"^time = ([\d.]+)"),), sound=points_of_centers),
    Row("hotspot", "1024 1024 400 {threads} {inputs}/temp_1024 {inputs}/power_1024 output.out",
        (Figure("Rodinia hotspot, 1024²", 1.2, r"Total time: ([\d.]+)"),), files=("output.out",)),
    # It prints each element that differs, and no word where none does.
    Row("lud", "-s 1024 -n {threads}", (Figure("Rodinia lud, 1024²", 2, r"Time consumed\(ms\): ([\d.]+)", scale=.001),),
        files=("stdout",), unlike="Time consumed", check_program="lud", check_arguments="-s 1024 -n {threads} -v"),
    adi(64, 30, 3),
    adi(256, 30, 1.6),
    # "overall" are all seconds, with more digits than "Elapsed time".
    Row("lulesh", "-s 40 -i 60", (Figure("LULESH 40³, 60 steps", 1.8, r"\(per dom\)\s*\(\s*([\d.]+) overall\)"),),
        same=(r"Final Origin Energy\s*=\s*(\S+)", r"Iteration count\s*=\s*(\S+)"), tolerance=1e-6),
    Row("comd", "-x 28 -y 28 -z 28 -N 30", (Figure("CoMD, 28³ cells, 30 steps", 1.3, r"^loop\s+1\s+[\d.]+\s+([\d.]+)"),),
        right="no atoms lost", same=(r"Final energy\s*:\s*(\S+)",), tolerance=1e-9),
    Row("hpccg", "64 64 64", (Figure("HPCCG 64³", 1.2, r"Time Summary:\s+Total\s*: ([\d.]+)"),), right=r"Final residual: \S+e-2\d",
        same=(r"Number of iterations: (\d+)", r"Iteration = 15\s+Residual = (\S+)"), tolerance=1e-3),
    # Its own checksums are of other numbers of look-ups: hence the status.
    Row("xsbench", "-s small -m event -l 1500000 -t {threads}",
        (Figure("XSBench, small, 1.5 million events", 1.3, r"Runtime:\s*([\d.]+)"),), same=(r"Verification checksum: (\d+)",), status=1),
    Row("stream", "", (Figure("STREAM, 10 million elements, first touch included", 1.5),), right="Solution Validates"),
    Row("clustalo", "--threads={threads} -i {inputs}/proteins.fa -o aligned.fa --force", (Figure("Debian's clustalo, 400 sequences", 2),),
        files=("aligned.fa",)),
)

# What a test of the command runs: no source but our own.
TINY_ROWS = (adi(24, 3, 1000),)


def needs(row):
    """The builds that the row takes."""
    return {row.program, row.check_program or row.program}


def why_missing(sources, name):
    """What has to be done first; "": nothing."""
    build = BUILDS[name]
    if build.repository == DEBIAN:
        return "" if shutil.which(build.product) else f"apt install {build.product}"
    if build.repository and not (sources / Path(build.repository).name / build.folder).is_dir():
        return f"git clone https://github.com/{build.repository} {sources / Path(build.repository).name}"
    return ""


def built(sources, name):
    """The program, built unless it is there already, and ""; or None and why it does not build."""
    build = BUILDS[name]
    if build.repository == DEBIAN:
        return shutil.which(build.product), ""
    target, copy = sources / "bin" / name, sources / "bin/builds" / name
    if target.exists():
        return target, ""
    shutil.rmtree(copy, ignore_errors=True)
    if build.repository:
        shutil.copytree(sources / Path(build.repository).name / build.folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    else:
        copy.mkdir(parents=True)
    done = subprocess.run(["sh", "-c", build.command], cwd=copy, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    if done.returncode != 0 or not (copy / build.product).is_file():
        return None, f"{build.command}: {done.stdout[-600:]}"
    shutil.move(copy / build.product, target)
    shutil.rmtree(copy)
    return target, ""


def write_grid(path, low, high, seed):
    source = random.Random(seed)
    path.write_text("".join(f"{source.uniform(low, high):.6f}\n" for _ in range(1024 * 1024)))


def input_files(sources):
    """The folder of what the programs read, written once."""
    folder = sources / "bin/inputs"
    if not (folder / "proteins.fa").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_grid(folder / "temp_1024", 320, 345, 1)
        write_grid(folder / "power_1024", 0, .01, 2)
        write_families(folder / "proteins.fa", 400, 100, PROTEIN, 0.3, 2, "")
    return folder
