#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory that the kernel uses otherwise than by the address of a buffer: direct input and output,
and a process's own memory by calls and as a file.

    memory_runs.py --hiroba build/bin/hiroba [--only direct]
"""
import sys

from process_runs import expect, main

HEAD = """
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <sys/uio.h>
    """
FLAGS = ("-O1", "-fopenmp", "-D_GNU_SOURCE")


def direct_files(bench):
    """O_DIRECT from and into memory of all nodes, by open, openat and fcntl."""
    program = bench.build("direct", HEAD + """
        enum { block = 12288, blocks = 96 };
        int main(void) {
            char *buffer = aligned_alloc(4096, block * blocks), *again = aligned_alloc(4096, block * blocks);
            int bad = 0;
            for (int way = 0; way < 3; ++way) {
                int fd = open("direct.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
            #pragma omp parallel for schedule(static, 1) reduction(+ : bad)
                for (int b = 0; b < blocks; ++b) {
                    memset(buffer + b * block, b + 1 + way, block);
                    int mine = way == 0 ? open("direct.bin", O_RDWR | O_DIRECT)
                                        : openat(AT_FDCWD, "direct.bin", O_RDWR | (way == 1 ? O_DIRECT : 0));
                    if (way == 2) bad += fcntl(mine, F_SETFL, O_DIRECT) != 0;
                    bad += pwrite(mine, buffer + b * block, block, (off_t)b * block) != block;
                    struct iovec v[2] = {{again + b * block, 4096}, {again + b * block + 4096, block - 4096}};
                    bad += preadv(mine, v, 2, (off_t)b * block) != block;
                    close(mine);
                }
                for (int b = 0; b < blocks; ++b)
                    for (int i = 0; i < block; i += 512) bad += again[b * block + i] != (char)(b + 1 + way);
                close(fd);
                unlink("direct.bin");
            }
            printf("bad %d\\n", bad);
        }""", *FLAGS)
    expect(bench.run(program), 0, "bad 0\n", "")


def own_memory(bench):
    """A process reads and writes its own memory by process_vm_readv() and /proc/self/mem, that of
    other nodes included."""
    program = bench.build("own", HEAD + """
        enum { pages = 64, page = 4096 };
        int main(void) {
            char *from = aligned_alloc(page, pages * page), *to = aligned_alloc(page, pages * page);
            int n = omp_get_max_threads(), wrong = 0;
        #pragma omp parallel
            if (omp_get_thread_num() == n - 1)
                for (int i = 0; i < pages; ++i) memset(from + i * page, i + 1, page);
            struct iovec there = {from, pages * page}, here = {to, pages * page};
            wrong += process_vm_readv(getpid(), &here, 1, &there, 1, 0) != pages * page;
            wrong += memcmp(from, to, pages * page) != 0;
        #pragma omp parallel
            if (omp_get_thread_num() == n - 1) memset(from, 77, pages * page);
            int fd = open("/proc/self/mem", O_RDWR);
            wrong += pread(fd, to, pages * page, (off_t)from) != pages * page || to[page] != 77;
        #pragma omp parallel
            if (omp_get_thread_num() == n - 1) memset(from, 78, pages * page);
            wrong += lseek(fd, (off_t)from, SEEK_SET) != (off_t)from;
            for (int i = 0; i < pages; ++i)
                wrong += read(fd, to, page) != page || to[9] != 78;
            memset(to, 79, pages * page);
            wrong += pwrite(fd, to, pages * page, (off_t)from) != pages * page;
            memset(to, 80, page);
            wrong += process_vm_writev(getpid(), &(struct iovec){to, page}, 1, &(struct iovec){from, page}, 1, 0) != page;
        #pragma omp parallel reduction(+ : wrong)
            for (int i = 0; i < pages; ++i) wrong += from[i * page + 3] != (i == 0 ? 80 : 79);
            printf("%d wrong\\n", wrong);
        }""", *FLAGS)
    expect(bench.run(program), 0, "0 wrong\n", "")


CASES = [direct_files, own_memory]


if __name__ == "__main__":
    sys.exit(main(CASES))
