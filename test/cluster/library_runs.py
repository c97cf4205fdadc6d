#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Large and many libraries that are opened later, and what else lies in the address space.

    library_runs.py --hiroba build/bin/hiroba [--only large]
"""
import shutil
import sys

from process_runs import expect, main


def many_libraries(bench):
    """Opened one after the other: sixty with short atomic instructions, whose landing pads would lie
    where the next ones shall; and three of a hundred writable segments each."""
    bench.build("libshort.so", "static int g; int f(int n) { return __atomic_fetch_add(&g, n, 5) + n; }",
                "-shared", "-fPIC", "-O2")
    names = [f"copy{i}.so" for i in range(60)]
    for name in names:
        shutil.copy(bench.folder / "libshort.so", bench.folder / name)
    pairs = range(100)
    script = bench.folder / "segments.ld"
    script.write_text("SECTIONS {" + "".join(
        f".w{i} : {{ *(.w{i}) }} .r{i} : {{ *(.r{i}) }}\n" for i in pairs) + "} INSERT AFTER .data;")
    parts = "\n".join(f'__attribute__((section(".w{i}"))) int w{i} = {i}; '
                      f'__attribute__((section(".r{i}"))) const int r{i} = 1;' for i in pairs)
    total = "".join(f" + w{i} * r{i}" for i in pairs)
    changes = "".join(f"w{i} += n; " for i in pairs)
    for name in ("wide0.so", "wide1.so", "wide2.so"):
        bench.build(name, f"{parts}\nint f(int n) {{ {changes} return 0{total}; }}",
                    "-shared", "-fPIC", f"-Wl,-T,{script}")
        names.append(name)
    program = bench.build("many", """
        int main(int argc, char** argv) {
            int (*f[100])(int), sum = 0, far = 0;
            for (int i = 1; i < argc; ++i) {
                void* library = dlopen(argv[i], RTLD_NOW);
                if (!library) { puts(dlerror()); return 1; }
                f[i] = (int (*)(int))dlsym(library, "f");
                sum += f[i](1);
            }
        #pragma omp parallel
            if (omp_get_thread_num() == omp_get_num_threads() - 1)
                for (int i = 1; i < argc; ++i) far += f[i](1);
            printf("%d %d\\n", sum, far);
        }""", "-fopenmp")
    here, far = 60 + 3 * (4950 + 100), 120 + 3 * (4950 + 200)
    expect(bench.run(program, *(f"./{name}" for name in names)), 0, f"{here} {far}\n", "")


def gigabytes_of_static_data(bench):
    """Trampolines lie near the code of a program that is larger than their displacements reach."""
    program = bench.build("large", """
        static double big[700000000];
        static int count;
        int main(void) {
            long n = sizeof big / sizeof *big, step = n / 64;
        #pragma omp parallel for schedule(static, 1)
            for (long i = 0; i < n; i += step) { big[i] = i; __atomic_fetch_add(&count, 1, 5); }
            double sum = 0;
            for (long i = 0; i < n; i += step) sum += big[i];
            printf("%d %d\\n", count, sum == step * 64. * 63 / 2);
        }""", "-fopenmp", "-mcmodel=medium")
    expect(bench.run(program), 0, "64 1\n", "")


def large_libraries(bench):
    """The kernel aligns a mapping of 2 MiB and more to that: a large library and the small and large
    ones it needs lie at the same places on every node, opened by path and by name."""
    fill = "const char room[3 << 20] = {1};"
    flags = ("-shared", "-fPIC", "-L.", "-Wl,-rpath,$ORIGIN")
    bench.build("libsmall.so", "int small = 1;", *flags)
    bench.build("libneeded.so", fill + "extern int small; int needed(void) { return small; }", *flags,
                "-lsmall")
    names = []
    for i in range(6):
        names.append(("./" if i % 2 == 0 else "") + f"libbig{i}.so")
        need = ("libsmall.so", "libneeded.so", "libsmall.so")[i % 3]
        use = "extern int small; int f(void) { return small; }" if need == "libsmall.so" else \
            "int needed(void); int f(void) { return needed(); }"
        own = f"lib{need[3:-3]}{i}.so"  # not opened by another before
        shutil.copy(bench.folder / need, bench.folder / own)
        bench.build(f"libbig{i}.so", (fill if i != 3 else "") + use, *flags, f"-l:{own}")
    program = bench.build("opens", """
        int main(int argc, char** argv) {
            int sum = 0;
            for (int i = 1; i < argc; ++i) {
                void* library = dlopen(argv[i], RTLD_NOW);
                if (!library) { puts(dlerror()); return 1; }
                int (*f)(void) = (int (*)(void))dlsym(library, "f");
        #pragma omp parallel reduction(+ : sum)
                sum += f();
            }
            printf("%d\\n", sum);
        }""", "-fopenmp", "-Wl,-rpath,$ORIGIN")
    for _ in range(3):
        expect(bench.run(program, *names), 0, f"{6 * bench.nodes}\n", "")


CASES = [many_libraries, large_libraries, gigabytes_of_static_data]


if __name__ == "__main__":
    sys.exit(main(CASES))
