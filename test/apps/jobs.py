# SPDX-License-Identifier: BSD-3-Clause
"""Small jobs for applications of Debian: what each reads, the command, and what of its results is compared.

A job is written once into a folder of its own, where every run starts. What it prints and the files it writes are
its results; lines that tell of time, version or place are left out (`noise`), and numbers may differ by `tolerance`
where sums are made in the order of threads."""
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from debian_programs import DNA, PROTEIN, write_families

PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's modules
# The program itself: R and Rscript are scripts that start it, alone.
R_PROGRAM, R_ARGUMENTS = "/usr/lib/R/bin/exec/R", ["--vanilla", "--no-echo", "-f", "job.R"]
R_ENVIRONMENT = {"R_HOME": "/usr/lib/R", "LD_LIBRARY_PATH": "/usr/lib/R/lib", "R_LIBS_SITE": "/usr/lib/R/site-library"}


class Job:
    """`command(threads)`: without the program's own path where that is looked up. `files`: results beside standard
    output. `environment`: what it needs besides."""

    def __init__(self, name, packages, program, command, write=None, files=(), noise="", tolerance=0.0,
                 environment=None):
        self.name, self.packages, self.program = name, packages, program
        self.command, self.write, self.files = command, write, list(files)
        self.noise, self.tolerance, self.environment = noise, tolerance, environment or {}

    def is_installed(self):
        return shutil.which(self.program) is not None


def script(name, text):
    """Writes a script that the job runs."""
    return lambda folder: (folder / name).write_text(text)


NUMPY = """
import numpy
random = numpy.random.RandomState(7)
a, b = random.rand(300, 200), random.rand(200, 250)
print("product %.10e" % (a @ b).sum())
s = a.T @ a + numpy.eye(200) * 10
print("solved %.10e" % numpy.linalg.solve(s, b.sum(axis=1)).sum())
print("cholesky %.10e" % numpy.abs(numpy.linalg.cholesky(s)).sum())
print("eigenvalues %.10e %.10e" % tuple(numpy.linalg.eigvalsh(s)[[0, -1]]))
print("singular %.10e" % numpy.linalg.svd(b, compute_uv=False).sum())
print("float32 %.4e" % (a.astype("f") @ b.astype("f")).sum())
"""
SCIPY = """
import numpy, scipy.linalg, scipy.sparse, scipy.sparse.linalg, scipy.optimize, scipy.fft, scipy.integrate
random = numpy.random.RandomState(3)
a = random.rand(150, 150) + numpy.eye(150) * 20
print("lu %.9e" % numpy.abs(scipy.linalg.lu(a)[2]).sum())
print("exponential %.9e" % scipy.linalg.expm(a / 50).sum())
n = 400
laplacian = scipy.sparse.diags([-1, 2.1, -1], [-1, 0, 1], (n, n), format="csc")
print("sparse %.9e" % scipy.sparse.linalg.spsolve(laplacian, numpy.ones(n)).sum())
print("eigen %.7e" % scipy.sparse.linalg.eigsh(laplacian, 3, sigma=0, v0=numpy.ones(n))[0].sum())
print("minimum %.4f" % abs(scipy.optimize.minimize(scipy.optimize.rosen, [1.3, .7, .8]).x.sum()))
print("transform %.9e" % numpy.abs(scipy.fft.fft(numpy.arange(500.), workers=2)).sum())
print("integral %.9e" % scipy.integrate.quad(lambda x: numpy.exp(-x * x), 0, 3)[0])
"""
SKLEARN = """
import numpy
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsClassifier
random = numpy.random.RandomState(5)
x = random.rand(600, 6)
y = (x[:, 0] * 3 + x[:, 1] ** 2).round(3)
print("k-means %.8e" % KMeans(5, n_init=2, random_state=1).fit(x).inertia_)
model = HistGradientBoostingRegressor(max_iter=20, random_state=1).fit(x, y)
print("boosting %.8e" % model.predict(x).sum())
print("neighbours %d" % KNeighborsClassifier(3).fit(x, (y > 1.5)).predict(x).sum())
"""
TORCH = """
import torch
torch.manual_seed(3)
a = torch.rand(300, 200, dtype=torch.float64)
print("product %.8e" % (a @ a.T).sum().item())
x = torch.rand(64, 20)
y = (x.sum(1, keepdim=True) > 10).float()
net = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1))
descent = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    descent.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    descent.step()
print("loss %.4f" % loss.item())
"""
PSI4 = """
memory 500 mb
molecule {
O
H 1 0.96
H 1 0.96 2 104.5
}
set basis 6-31g
set scf_type pk
print("energy %.8f" % energy("scf"))
"""
CP2K = """
&GLOBAL
  PROJECT h2
  RUN_TYPE ENERGY
  PRINT_LEVEL LOW
&END GLOBAL
&FORCE_EVAL
  METHOD Quickstep
  &DFT
    BASIS_SET_FILE_NAME /usr/share/cp2k/BASIS_SET
    POTENTIAL_FILE_NAME /usr/share/cp2k/POTENTIAL
    &MGRID
      CUTOFF 100
    &END MGRID
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
    &SCF
      MAX_SCF 10
    &END SCF
  &END DFT
  &SUBSYS
    &CELL
      ABC 6.0 6.0 6.0
    &END CELL
    &COORD
      H 0.0 0.0 0.0
      H 0.0 0.0 0.74
    &END COORD
    &KIND H
      BASIS_SET SZV-GTH-PADE
      POTENTIAL GTH-PADE-q1
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""
R = """
set.seed(4)
a <- matrix(runif(200 * 150), 200)
cat(sprintf("product %.9e\\n", sum(a %*% t(a))))
cat(sprintf("solved %.9e\\n", sum(solve(crossprod(a) + diag(150)))))
cat(sprintf("singular %.9e\\n", sum(svd(a)$d)))
fit <- lm(a[, 1] ~ a[, 2:10])
cat(sprintf("fit %.9e\\n", sum(coef(fit))))
"""
DATA_TABLE = """
library(data.table)
setDTthreads(2)
set.seed(2)
t <- data.table(g = sample(300, 20000, TRUE), x = round(runif(20000), 6))
s <- t[, .(sum = sum(x), n = .N), by = g][order(g)]
cat(sprintf("%d %.6f %d\\n", s$g[1:20], s$sum[1:20], s$n[1:20]), sep = "")
fwrite(s, "groups.csv")
cat(nrow(fread("groups.csv")), sum(fread("groups.csv")$n), "\\n")
setorder(t, x, g)
cat(t$g[1:10], "\\n")
"""
OCTAVE = """
rand("twister", 3); a = rand(180, 120);
printf("product %.9e\\n", sum(sum(a * a')));
printf("solved %.9e\\n", sum((a' * a + eye(120)) \\ a(1, :)'));
printf("singular %.9e\\n", sum(svd(a)));
printf("eigen %.9e\\n", max(real(eig(a' * a))));
printf("transform %.9e\\n", sum(sum(abs(fft2(a)))));
"""
WATER = """12

O -1.551007 -0.114520 0.000000
H -1.934259 0.762503 0.000000
H -0.599677 0.040712 0.000000
O 1.350625 0.111469 0.000000
H 1.680398 -0.373741 -0.758561
H 1.680398 -0.373741 0.758561
O 0.100000 2.900000 0.300000
H 0.900000 2.400000 0.500000
H -0.600000 2.300000 0.100000
O 0.200000 -2.800000 -0.400000
H 0.800000 -2.100000 -0.200000
H -0.600000 -2.300000 -0.600000
"""
CIRCUIT = """ladder of resistors and capacitors
v1 in 0 pulse(0 5 0 1n 1n 5u 10u)
r1 in a 1k
c1 a 0 1n
r2 a b 2k
c2 b 0 470p
d1 b out dx
r3 out 0 10k
.model dx d(is=1e-14)
.tran 0.1u 20u
.print tran v(a) v(out)
.end
"""


def write_picture(folder):
    """A smooth picture with some noise, in the plainest format."""
    source, side = random.Random(9), 96
    rows = [" ".join(str(v) for x in range(side)
                     for v in (x * 255 // side, y * 255 // side, (x * y + source.randint(0, 30)) % 256))
            for y in range(side)]
    (folder / "in.ppm").write_text(f"P3\n{side} {side}\n255\n" + "\n".join(rows) + "\n")


def family(name, count, length, alphabet, rate):
    return lambda folder: write_families(folder / name, count, length, alphabet, rate, 11, "")


def aligned(name, count):
    """Sequences of one length."""
    def write(folder):
        source = random.Random(8)
        first = "".join(source.choice("ACGT") for _ in range(240))
        with open(folder / name, "w") as file:
            for number in range(count):
                letters = [source.choice("ACGT") if source.random() < 0.02 * (number % 7 + 1) else one for one in first]
                file.write(f">s{number}\n{''.join(letters)}\n")
    return write


def all_jobs():
    return [
        Job("numpy on OpenBLAS", ["python3-numpy", "libopenblas0-openmp"], PYTHON, lambda n: ["job.py"],
            script("job.py", NUMPY), tolerance=1e-6),
        Job("scipy", ["python3-scipy", "libopenblas0-openmp"], PYTHON, lambda n: ["job.py"],
            script("job.py", SCIPY), tolerance=1e-6),
        Job("scikit-learn", ["python3-sklearn", "libopenblas0-openmp"], PYTHON, lambda n: ["job.py"],
            script("job.py", SKLEARN), tolerance=1e-6),
        Job("torch", ["python3-torch"], PYTHON, lambda n: ["job.py"], script("job.py", TORCH), tolerance=1e-6),
        Job("Psi4", ["psi4"], PYTHON, lambda n: ["/usr/bin/psi4", "in.dat", "out.dat", "-n", str(n)],
            script("in.dat", PSI4), tolerance=1e-6),
        Job("CP2K", ["cp2k"], "cp2k.psmp", lambda n: ["-i", "h2.inp"], script("h2.inp", CP2K),
            noise=r"^(?!.*ENERGY\|)", tolerance=1e-6,  # its daemon, and OpenCL by hwloc, are Open MPI's
            environment={"OMPI_MCA_ess_singleton_isolated": "1", "HWLOC_COMPONENTS": "-opencl"}),
        Job("RawTherapee", ["rawtherapee", "graphicsmagick"], "rawtherapee-cli",
            lambda n: ["-q", "-Y", "-t", "-o", "out.tif", "-c", "in.tif"], write_tif, ["out.tif"], noise="^"),
        Job("R on OpenBLAS", ["r-base-core", "libopenblas0-openmp"], R_PROGRAM, lambda n: R_ARGUMENTS,
            script("job.R", R), tolerance=1e-6, environment=R_ENVIRONMENT),
        Job("data.table", ["r-cran-data.table"], R_PROGRAM, lambda n: R_ARGUMENTS,
            script("job.R", DATA_TABLE), ["groups.csv"], environment=R_ENVIRONMENT),
        Job("octave", ["octave", "libopenblas0-openmp"], "octave-cli", lambda n: ["--norc", "-q", "job.m"],
            script("job.m", OCTAVE), tolerance=1e-6),
        Job("xtb", ["xtb"], "xtb", lambda n: ["water.xyz", "--gfn", "2", "--grad"], script("water.xyz", WATER),
            ["charges", "gradient"], noise="^", tolerance=1e-5),  # the gradient's file has the energy, too
        Job("GraphicsMagick", ["graphicsmagick"], "gm",
            lambda n: ["convert", "in.ppm", "-resize", "200x150", "-blur", "2x1", "-modulate", "110", "-rotate", "30",
                       "out.ppm"], write_picture, ["out.ppm"]),
        Job("Clustal Omega", ["clustalo"], "clustalo",
            lambda n: ["--threads", str(n), "-i", "in.fa", "-o", "out.fa", "--force"],
            family("in.fa", 10, 80, PROTEIN, 0.3), ["out.fa"]),
        Job("kalign", ["kalign"], "/usr/lib/kalign/kalign-plain", lambda n: ["-n", str(n), "-i", "in.fa", "-o", "out.fa"],
            family("in.fa", 60, 100, PROTEIN, 0.3), ["out.fa"], noise=r"\d\d:\d\d|seconds|LOG"),
        Job("sumaclust", ["sumaclust"], "sumaclust", lambda n: ["-p", str(n), "-t", "0.9", "-F", "out.fa", "in.fa"],
            family("in.fa", 150, 100, DNA, 0.05), ["out.fa"]),
        Job("FastTree", ["fasttree"], "fasttreeMP", lambda n: ["-nt", "-quiet", "in.fa"], aligned("in.fa", 24),
            tolerance=1e-4),
        Job("MUSCLE", ["muscle"], "muscle", lambda n: ["-align", "in.fa", "-output", "out.fa", "-threads", str(n)],
            family("in.fa", 12, 80, PROTEIN, 0.3), ["out.fa"]),
        Job("CD-HIT", ["cd-hit"], "cd-hit", lambda n: ["-i", "in.fa", "-o", "out.fa", "-T", str(n), "-d", "0"],
            family("in.fa", 120, 120, PROTEIN, 0.05), ["out.fa", "out.fa.clstr"],
            noise="^"),
        Job("primecount", ["primecount-bin"], "primecount", lambda n: ["1e10", f"--threads={n}"]),
        Job("ngspice", ["ngspice"], "ngspice", lambda n: ["-b", "in.cir"], script("in.cir", CIRCUIT),
            noise=r"time|DRAM|memory|size|stack|[Dd]ate|Total|pages|ngspice|Note|Mon|Tue|Wed|Thu|Fri|Sat|Sun"),
        Job("IQ-TREE", ["iqtree"], "iqtree2",
            lambda n: ["-s", "in.fa", "-m", "JC", "-T", str(n), "-seed", "5", "-redo", "-quiet"], aligned("in.fa", 10),
            ["in.fa.treefile"], noise="^", tolerance=1e-3),
        Job("pngquant", ["pngquant", "graphicsmagick"], "pngquant", lambda n: ["--force", "--speed", "3", "32", "-o", "out.png", "in.png"],
            write_png, ["out.png"]),
    ]


def convert(*arguments):
    import subprocess
    subprocess.run(["gm", "convert", *map(str, arguments)], check=True)


def write_png(folder):
    write_picture(folder)
    convert(folder / "in.ppm", folder / "in.png")


def write_tif(folder):
    write_picture(folder)
    convert(folder / "in.ppm", folder / "in.tif")
