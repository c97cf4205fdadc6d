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
    """Trampolines lie near the code of a program that is larger than their displacements reach, and
    has tables in it like libcrypto."""
    program = bench.build("large", """
        static double big[700000000];
        static int count;
        /* Data among the code, which reads like instructions on what is far away. */
        __asm__(".text; lock incl 0x7f000000(%rip); lock incl -0x7f000000(%rip)");
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


def next_function(bench):
    """A preloaded library that stands before libc's functions, and asks for them by RTLD_NEXT."""
    bench.build("libbefore.so", """
        #define NEXT(f) ((int (*)(int))dlsym(RTLD_NEXT, #f))
        int abs(int x) { return 1000 + NEXT(abs)(x); }
        int toupper(int x) { return ((int (*)(int))dlvsym(RTLD_NEXT, "toupper", "GLIBC_2.2.5"))(x); }
        int before(int x) { return NEXT(abs)(x); }""", "-shared", "-fPIC", "-D_GNU_SOURCE")
    program = bench.build("calls", """
        int toupper(int);
        int main(void) {
            int (*volatile f)(int) = abs;
            int (*before)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "before"), sum = 0;
        #pragma omp parallel reduction(+ : sum)
            sum += f(-1) + toupper('a') - 'A' + before(-3) + (dlsym(RTLD_NEXT, "main") == NULL);
            printf("%d\\n", sum);
        }""", "-fopenmp", "-D_GNU_SOURCE")
    expect(bench.run(program, LD_PRELOAD=str(bench.folder / "libbefore.so")), 0,
           f"{1005 * bench.nodes}\n", "")


def stack_end(bench):
    """The variable by which R and conservative collectors know main's stack; the program has a copy
    of it or not; after a library was opened for which the loader makes its own stack executable. R
    takes the end of the mapping in which it lies."""
    ask = """
        extern void* __libc_stack_end;
        int inside(void* local) {
            char* end = __libc_stack_end;
            return (char*)local < end && end - (char*)local < 65536;
        }
        int near_end_of_mapping(void* local) {
            unsigned long begin, end, at = (unsigned long)__libc_stack_end;
            FILE* maps = fopen("/proc/self/maps", "r");
            for (char line[512]; fgets(line, sizeof line, maps) != NULL;)
                if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= at && at < end) break;
            fclose(maps);
            return end - (unsigned long)local < 65536;
        }"""
    bench.build("libask.so", ask, "-shared", "-fPIC")
    bench.build("libexec.so", """
        static int apply(int (*f)(int), int x) { return f(x); }
        int nested(int base) { int add(int x) { return x + base; } return apply(add, 1); }""",
                "-shared", "-fPIC")
    declared = "int inside(void*), near_end_of_mapping(void*);"
    for name, begin, flags in (("copy", ask, []), ("none", declared, ["-L.", "-lask"])):
        program = bench.build(name, begin + """
            int main(void) {
                int local, right = inside(&local), all = 0;
                int (*nested)(int) = (int (*)(int))dlsym(dlopen("./libexec.so", RTLD_NOW), "nested");
                right += inside(&local) + near_end_of_mapping(&local);
            #pragma omp parallel reduction(+ : all)
                all += inside(&local) + nested(1);
                printf("%d %d\\n", right, all);
            }""", "-fopenmp", *flags)
        expect(bench.run(program), 0, f"3 {3 * bench.nodes}\n", "")


CASES = [many_libraries, large_libraries, gigabytes_of_static_data, next_function, stack_end]


if __name__ == "__main__":
    sys.exit(main(CASES))
