#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is looked at otherwise than by loads and stores of what malloc gave: protections,
direct input and output, a process's own memory by calls and as a file, files that are mapped
shared, reserved address space, allocators.

    memory_runs.py --hiroba build/bin/hiroba [--only direct]
"""
import sys

from process_runs import expect, main

HEAD = """
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <sys/uio.h>
    #include <setjmp.h>
    static char* map(size_t bytes, int protection) {
        return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
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


# Each way to see a file's bytes sees what all nodes write: other views of it, calls, its growth.
FILES = HEAD + """
    #include <sys/stat.h>
    enum { page = 4096, pages = 64 };
    static int wrong;
    static void write_all(char* at, int add) {
    #pragma omp parallel for schedule(static, 1)
        for (int i = 0; i < pages; ++i) memset(at + i * page, i + add, page);
    }
    static int differ(const char* at, int add) {
        int bad = 0;
    #pragma omp parallel for schedule(static, 1) reduction(+ : bad)
        for (int i = pages - 1; i >= 0; --i)
            for (int k = 0; k < page; k += 64) bad += at[i * page + k] != (char)(i + add);
        return bad;
    }
    static char* view(void* at, size_t bytes, int fd, int protection) {
        return mmap(at, bytes, protection, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
    }
    int main(void) {
        const int both = PROT_READ | PROT_WRITE;
        int fd = open("shared.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
        ftruncate(fd, pages * page);
        char *a = view(0, pages * page, fd, both), *b = view(0, pages * page, fd, PROT_READ);
        char* buffer = malloc(2 * pages * page);
        write_all(a, 1);
        wrong += differ(b, 1) != 0;
        wrong += pread(fd, buffer, pages * page, 0) != pages * page || differ(buffer, 1);
        memset(buffer, 7, page);
        wrong += pwrite(fd, buffer, page, page) != page || a[page] != 7 || b[page + 9] != 7;
        /* It grows, and is mapped anew. */
        ftruncate(fd, 2 * pages * page);
        char* c = mremap(a, pages * page, 2 * pages * page, MREMAP_MAYMOVE);
        write_all(c + pages * page, 3);
        wrong += msync(c, 2 * pages * page, MS_SYNC);
        wrong += pread(fd, buffer, pages * page, pages * page) != pages * page || differ(buffer, 3);
        wrong += mprotect(b, page, both) || (b[5] = 42, c[5] != 42);
        wrong += munmap(c, 2 * pages * page) || munmap(b, pages * page);
        close(fd);
        /* A ring that is seen twice, in reserved address space. */
        int ring = memfd_create("ring", 0);
        ftruncate(ring, pages * page);
        char* twice = map(2 * pages * page, PROT_NONE);
        wrong += view(twice, pages * page, ring, both) != twice;
        wrong += view(twice + pages * page, pages * page, ring, both) != twice + pages * page;
        write_all(twice, 5);
        wrong += differ(twice + pages * page, 5) != 0;
        wrong += munmap(twice, 2 * pages * page);
        close(ring);
        /* Mapped in a region, by another node than that which uses it. */
        char* late = NULL;
        int n = omp_get_max_threads();
    #pragma omp parallel num_threads(n) reduction(+ : wrong)
        {
            if (omp_get_thread_num() == n - 1) {
                int own = open("late.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
                ftruncate(own, pages * page);
                late = view(0, pages * page, own, both);
                close(own);
                late[3] = 5;
            }
        #pragma omp barrier
            if (omp_get_thread_num() == 0) { wrong += late[3] != 5; late[page] = 6; }
        #pragma omp barrier
            if (omp_get_thread_num() == n - 1) wrong += late[page] != 6 || munmap(late, pages * page);
        }
        /* Many, one after the other. */
        for (int i = 0; i < 300; ++i) {
            int one = open("late.bin", O_RDWR);
            char* at = view(0, page, one, both);
            close(one);
            at[0] = i;
            if (i % 60 == 0) {
            #pragma omp parallel reduction(+ : wrong)
                wrong += at[0] != (char)i;
            }
            munmap(at, page);
        }
        char* zero = view(0, page, open("/dev/zero", O_RDWR), both);
    #pragma omp parallel
        if (omp_get_thread_num() == n - 1) zero[1] = 9;
        wrong += zero[1] != 9 || zero[2] != 0;
        /* Read when the process has ended. */
        fd = open("shared.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
        ftruncate(fd, pages * page);
        write_all(view(0, pages * page, fd, both), 1);
        printf("%d wrong\\n", wrong);
    }"""


def shared_files(bench):
    """A file that is mapped shared is the file, to every node and to others."""
    program = bench.build("shared", FILES, *FLAGS)
    for provider in ("shm", "udp"):
        expect(bench.run(program, HIROBA_PROVIDER=provider), 0, "0 wrong\n", "")
        bytes_left = (bench.folder / "shared.bin").read_bytes()
        assert bytes_left == b"".join(bytes([i + 1]) * 4096 for i in range(64)), "the file's bytes"


def reservations(bench):
    """Address space is reserved, a part of it made accessible, used, given back and used again."""
    program = bench.build("reserve", HEAD + """
        enum { parts = 16, part = 1 << 20 };
        int main(void) {
            const size_t whole = 64ul << 30, step = 1ul << 30;
            int wrong = 0;
            for (int round = 0; round < 3; ++round) {
                char* base = map(whole, PROT_NONE);
                if (base == MAP_FAILED) return 9;
            #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
                for (int k = 0; k < parts; ++k) {  /* by each node */
                    wrong += mprotect(base + k * step, part, PROT_READ | PROT_WRITE);
                    for (int i = 0; i < part; i += 512) wrong += base[k * step + i];
                    memset(base + k * step, k + 1, part);
                }
            #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
                for (int k = parts - 1; k >= 0; --k) wrong += base[k * step + part - 1] != k + 1;
                for (int k = 0; k < parts; k += 2) {
                    if (k % 4) madvise(base + k * step, part, MADV_DONTNEED);
                    else mmap(base + k * step, part, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
                }
            #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
                for (int k = parts - 1; k >= 0; --k)
                    for (int i = 0; i < part; i += 512)
                        wrong += base[k * step + i] != (k % 2 ? k + 1 : 0);
                wrong += madvise(base, whole, MADV_DONTNEED);
            #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
                for (int k = 0; k < parts; ++k) wrong += base[k * step + 77] != 0;
                char* huge = malloc(100 << 20);  /* it is not held against this */
                wrong += huge == NULL;
                free(huge);
                wrong += munmap(base, whole);
            }
            char* sparse = map(64ul << 30, PROT_READ | PROT_WRITE);
        #pragma omp parallel for schedule(static, 1)
            for (int k = 0; k < parts; ++k) sparse[k * step] = k;
            for (int k = 0; k < parts; ++k) wrong += sparse[k * step] != k;
            char* fresh = calloc(64, part);
        #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
            for (int k = 0; k < 64 * part; k += 512) wrong += fresh[k];
            printf("%d wrong\\n", wrong);
        }""", *FLAGS)
    expect(bench.run(program), 0, "0 wrong\n", "")
    expect(bench.run(program, HIROBA_PROVIDER="udp"), 0, "0 wrong\n", "")


def large_thread_data(bench):
    """Thread-local data beyond what a stack's slice has room for."""
    program = bench.build("threadprivate", HEAD + """
        static char mine[150 << 20];
        #pragma omp threadprivate(mine)
        int main(void) {
            long bad = 0;
        #pragma omp parallel reduction(+ : bad)
            {
                int t = omp_get_thread_num() + 1;
                for (long i = 0; i < (long)sizeof mine; i += 1 << 16) mine[i] = t;
            #pragma omp barrier
                for (long i = 0; i < (long)sizeof mine; i += 1 << 16) bad += mine[i] != t;
            }
            printf("bad %ld\\n", bad);
        }""", *FLAGS)
    expect(bench.run(program), 0, "bad 0\n", "")


# As those that programs link: it defines malloc's names and those that libc has beside them, and
# mmap by a bare call; and it knows its own blocks alone.
ALLOCATOR = """
    #include <malloc.h>
    #include <sys/mman.h>
    #include <sys/syscall.h>
    static char* arena;
    static size_t used;
    enum { room = 1 << 28 };
    void* mmap(void* at, size_t n, int p, int f, int fd, off_t o) {
        return (void*)syscall(SYS_mmap, at, n, p, f, fd, o);
    }
    int munmap(void* at, size_t n) { return syscall(SYS_munmap, at, n); }
    static size_t* head(void* p) {
        if ((size_t)((char*)p - arena) >= room) abort();
        return (size_t*)p - 2;
    }
    void* memalign(size_t to, size_t n) {
        if (arena == NULL) arena = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t at = __atomic_fetch_add(&used, n + to + 32, __ATOMIC_RELAXED);
        char* p = (char*)(((size_t)arena + at + 16 + to - 1 + 16) / to * to);
        *head(p) = n;
        return p;
    }
    void* malloc(size_t n) { return memalign(16, n); }
    void free(void* p) { if (p != NULL) *head(p) = 0; }
    void* calloc(size_t n, size_t each) { return memset(malloc(n * each), 0, n * each); }
    size_t malloc_usable_size(void* p) { return *head(p); }
    void* realloc(void* p, size_t n) {
        void* more = malloc(n);
        return p == NULL ? more : memcpy(more, p, *head(p) < n ? *head(p) : n);
    }
    int posix_memalign(void** p, size_t to, size_t n) { return (*p = memalign(to, n)) == NULL; }
    void* aligned_alloc(size_t to, size_t n) { return memalign(to, n); }
    void* __libc_malloc(size_t n) { return malloc(n); }
    void* __libc_calloc(size_t n, size_t each) { return calloc(n, each); }
    void* __libc_realloc(void* p, size_t n) { return realloc(p, n); }
    void* __libc_memalign(size_t to, size_t n) { return memalign(to, n); }
    void __libc_free(void* p) { free(p); }
    struct mallinfo mallinfo(void) { abort(); }
    int mallopt(int what, int value) { abort(); }
    """
ALLOCATES = HEAD + """
    #include <malloc.h>
    enum { blocks = 96 };
    int main(void) {
        char* p[blocks];
        int wrong = 0;
    #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
        for (int i = 0; i < blocks; ++i) {
            size_t n = 100 + 977 * i;
            switch (i % 5) {
                case 0: p[i] = malloc(n); break;
                case 1: p[i] = calloc(n, 1); break;
                case 2: wrong += posix_memalign((void**)&p[i], 4096, n); break;
                case 3: p[i] = memalign(256, n); break;
                default: p[i] = realloc(strdup("a string of libc's"), n);
            }
            wrong += malloc_usable_size(p[i]) < n;
            memset(p[i], i, n);
        }
    #pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
        for (int i = 0; i < blocks; ++i) {
            int other = blocks - 1 - i;
            p[other] = realloc(p[other], 200000);
            for (int k = 0; k < 100; ++k) wrong += p[other][k] != (char)other;
        }
        wrong += mallinfo2().uordblks < blocks * 200000ul || mallopt(M_ARENA_MAX, 1) != 1;
        wrong += mallinfo().uordblks < blocks * 200000;
        for (int i = 0; i < blocks; ++i) free(p[i]);
        FILE* file = fopen("lines", "w+");
        fputs("one\\ntwo\\n", file);
        rewind(file);
        char* line = NULL;
        size_t room = 0;
        while (getline(&line, &room, file) > 0) wrong += malloc_usable_size(line) < 4;
        free(line);
        printf("%d wrong\\n", wrong);
    }"""

# The program itself has a malloc, which the C++ library's constructors call first; its arena lies
# where it wishes. libc allocates there, too, on a node whose memory is not served yet.
OWN_MALLOC = """
    #include <sys/mman.h>
    static char *arena, *top;
    static int atomics;
    void* malloc(size_t n) {
        if (arena == NULL)
            top = arena = mmap((void*)0x6a700000000, 256ul << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        char* block = __atomic_fetch_add(&top, (n + 31) & ~15ul, __ATOMIC_RELAXED);
        *(size_t*)block = n;
        return block + 16;
    }
    void free(void* p) { (void)p; }
    void* calloc(size_t n, size_t each) { return memset(malloc(n * each), 0, n * each); }
    void* realloc(void* p, size_t n) {
        void* more = malloc(n);
        if (p != NULL) memcpy(more, p, ((size_t*)p)[-2] < n ? ((size_t*)p)[-2] : n);
        return more;
    }
    __attribute__((constructor)) static void first(void) { free(malloc(1)); }
    int main(void) {
        int n = 1 << 14, *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), wrong = 0;
        for (int i = 0; i < n; ++i) a[i] = i;
    #pragma omp parallel for schedule(static)
        for (int i = 0; i < n; ++i) b[i] = a[i] + 1;
    #pragma omp parallel
        __atomic_fetch_add(&atomics, 1, __ATOMIC_RELAXED);
        while (n-- > 0) wrong += b[n] != n + 1;
        printf("%d wrong\\n", wrong + (atomics != omp_get_max_threads()));
    }"""


def allocators(bench):
    """An allocator that is linked or preloaded: the program's memory is that of all nodes, libc's
    is libc's own."""
    bench.build("libown.so", ALLOCATOR, "-shared", "-fPIC", "-fno-builtin")
    linked = bench.build("linked", ALLOCATES, *FLAGS, "-Wl,--no-as-needed", "-L.", "-lown")
    expect(bench.run(linked), 0, "0 wrong\n", "")
    plain = bench.build("plain", ALLOCATES, *FLAGS)
    expect(bench.run(plain), 0, "0 wrong\n", "")
    expect(bench.run(plain, LD_PRELOAD="./libown.so"), 0, "0 wrong\n", "")
    within = bench.build("within", OWN_MALLOC, *FLAGS)
    expect(bench.run(within), 0, "0 wrong\n", "")
    expect(bench.run(within, HIROBA_PROVIDER="udp"), 0, "0 wrong\n", "")


# Each way to meet a page that is forbidden, by each node; what is allowed again can be used.
GUARDS = HEAD + """
    static __thread sigjmp_buf back;
    static __thread char* at;
    static void on_fault(int signal, siginfo_t* info, void* context) {
        siglongjmp(back, (char*)info->si_addr == at ? 1 : 2);
    }
    static int meets(volatile char* page, int write) {
        at = (char*)page;
        const int how = sigsetjmp(back, 1);
        if (how != 0) return how;
        if (write) *page = 1; else (void)*page;
        return 0;
    }
    enum { page = 4096 };
    int main(int argc, char** argv) {
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
        char *a = map(4 * page, PROT_READ | PROT_WRITE), *reserved = map(64ul << 30, PROT_NONE);
        static char data[2 * page] __attribute__((aligned(4096)));
        int n = omp_get_max_threads(), wrong = 0;
        if (argc > 1) {  /* no handler: the end */
            mprotect(a + page, page, PROT_NONE);
            if (*argv[1] == 'm') a[page] = 1;
        #pragma omp parallel
            if (omp_get_thread_num() == n - 1) a[page] = 1;
            puts("not seen");
            return 0;
        }
        sigaction(SIGSEGV, &action, NULL);
        memset(a, 7, 4 * page);
        mprotect(a + page, page, PROT_NONE);
        mprotect(a + 2 * page, page, PROT_READ);
        mprotect(data + page, page, PROT_READ);
        mprotect(reserved + (1ul << 30), 3 * page, PROT_READ | PROT_WRITE);
        for (int round = 0; round < 2; ++round) {
        #pragma omp parallel reduction(+ : wrong)
            {
                char* mine = reserved + (1ul << 30) + page;
                wrong += meets(a + page, 0) != 1 || meets(a + page + 9, 1) != 1;
                wrong += meets(a + 2 * page, 0) != 0 || meets(a + 2 * page, 1) != 1;
                wrong += meets(data + page, 1) != 1 || meets(data, 1) != 0;
                wrong += meets(reserved, 0) != 1 || meets(mine + omp_get_thread_num(), 1) != 0;
                int fd = open("/dev/zero", O_RDONLY);
                wrong += read(fd, a + page, 8) != -1 || errno != EFAULT;
                close(fd);
                wrong += a[0] != 7 || a[3 * page] != 7 || a[2 * page] != 7;
            }
        }
        /* What one thread allows, and tells another of, that one may use. */
        volatile int told = 0;
        char* part = reserved + (2ul << 30);
        #pragma omp parallel num_threads(n) reduction(+ : wrong)
        {
            if (omp_get_thread_num() == n - 1) {
                wrong += mprotect(part, 2 * page, PROT_READ | PROT_WRITE);
                part[page] = 5;
                mprotect(a + page, page, PROT_READ | PROT_WRITE);
                a[page] += 1;
            }
        #pragma omp barrier
            if (omp_get_thread_num() == 0)
                wrong += meets(part + page, 0) || part[page] != 5 || meets(a + page, 0) || a[page] != 8;
        }
        mprotect(a + 3 * page, page, PROT_NONE);
        madvise(reserved + (1ul << 30), page, MADV_DONTNEED);
        #pragma omp parallel reduction(+ : wrong)
        wrong += meets(a + 3 * page, 0) != 1 || meets(part + page, 1) || meets(a + page, 0);
        mmap(a + 3 * page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        #pragma omp parallel reduction(+ : wrong)
        wrong += meets(a + 3 * page, 0) || a[3 * page] != 0;
        munmap(reserved, 64ul << 30);
        munmap(a, 4 * page);
        char* again = calloc(8, page);
        #pragma omp parallel for reduction(+ : wrong)
        for (int i = 0; i < 8; ++i) wrong += meets(again + i * page, 1);
        printf("%d wrong\\n", wrong);
    }"""


def guard_pages(bench):
    """A page that the program forbids is forbidden on every node, to the kernel, too; until it is
    allowed, mapped anew or unmapped."""
    program = bench.build("guards", GUARDS, *FLAGS)
    expect(bench.run(program), 0, "0 wrong\n", "")
    for who, rank in (("main", 0), ("worker", bench.nodes - 1)):
        expect(bench.run(program, who), 139, "", rf"rank {rank} .*signal 11")


def dirty_pages(bench):
    """A write barrier: pages are forbidden, and a handler allows each that is written."""
    program = bench.build("dirty", HEAD + """
        enum { pages = 64, page = 4096 };
        static char* area;
        static int dirty[pages];
        static void on_write(int signal, siginfo_t* info, void* context) {
            long p = ((char*)info->si_addr - area) / page;
            if (p < 0 || p >= pages) _exit(3);
            __atomic_store_n(&dirty[p], 1, __ATOMIC_RELAXED);
            mprotect(area + p * page, page, PROT_READ | PROT_WRITE);
        }
        int main(void) {
            struct sigaction action = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO};
            sigaction(SIGSEGV, &action, NULL);
            area = map(pages * page, PROT_READ | PROT_WRITE);
            int found = 0, wrong = 0;
            for (int round = 1; round <= 3; ++round) {
                memset(dirty, 0, sizeof dirty);
                mprotect(area, pages * page, PROT_READ);
            #pragma omp parallel for schedule(static, 1)
                for (int i = 0; i < pages; ++i) if (i % 3 == 0) area[i * page + 5] += round;
                for (int i = 0; i < pages; ++i) {
                    found += dirty[i];
                    wrong += dirty[i] != (i % 3 == 0);
                    wrong += area[i * page + 5] != (i % 3 == 0) * round * (round + 1) / 2;
                }
            }
            printf("%d %d\\n", found, wrong);
        }""", *FLAGS)
    expect(bench.run(program), 0, "66 0\n", "")


def mapped_to_be_read(bench):
    """What is mapped without PROT_WRITE refuses writes on every node, to handlers that leave by a
    jump, until mprotect() allows them. As faults of nowhere and of a division."""
    program = bench.build("readable", HEAD + """
        static __thread sigjmp_buf back;
        static __thread void* where;
        static volatile int zero;
        static void caught(int number, siginfo_t* info, void* context) {
            where = info->si_addr;
            siglongjmp(back, number);
        }
        static int refuses(volatile char* at) {
            if (sigsetjmp(back, 1) != 0) return where == at;
            *at = 1;
            return 0;
        }
        static int divides_by_zero(void) {
            int number = sigsetjmp(back, 1);
            if (number != 0) return number == SIGFPE;
            zero = 5 / zero;
            return 0;
        }
        int main(void) {
            enum { bytes = 8192 };
            struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
            sigaction(SIGSEGV, &action, NULL);
            sigaction(SIGFPE, &action, NULL);
            int fd = open("readable.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
            if (ftruncate(fd, bytes) != 0) return 1;
            char* page = map(bytes, PROT_READ);
            char* file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
            char* fixed = map(bytes, PROT_READ | PROT_WRITE);
            mmap(fixed, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            int refused = 0, divisions = 0, sum = 0, n = omp_get_max_threads();
        #pragma omp parallel reduction(+ : refused, divisions)
            {
                int me = omp_get_thread_num();
                stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
                sigaltstack(&stack, NULL);
                for (int i = 0; i < 5; ++i) {
                    refused += refuses((char*)16) && refuses(page + 100 * i + me) &&
                               refuses(file + 100 * i + me) && refuses(fixed + 100 * i + me);
                    divisions += divides_by_zero();
                }
            }
            mprotect(page, bytes, PROT_READ | PROT_WRITE);
        #pragma omp parallel
            page[omp_get_thread_num() * 1000] = 9;
            for (int i = 0; i < bytes; ++i) sum += page[i] + file[i] + fixed[i];
            printf("%d %d %d\\n", refused == 5 * n, divisions == 5 * n, sum == 9 * n);
        }""", *FLAGS)
    expect(bench.run(program), 0, "1 1 1\n", "")


def memory_of_others(bench):
    """What main forbids and allows again of memory that a worker has allocated."""
    program = bench.build("others", HEAD + """
        int main(void) {
            enum { page = 4096 };
            char* a = NULL;
            int n = omp_get_max_threads(), wrong = 0;
        #pragma omp parallel
            if (omp_get_thread_num() == n - 1) a = aligned_alloc(page, 8 * page);
            for (int round = 0; round < 3; ++round) {
                wrong += mprotect(a, 4 * page, PROT_NONE);
            #pragma omp parallel
                a[5 * page + omp_get_thread_num()] = 1;
                wrong += mprotect(a, 4 * page, PROT_READ | PROT_WRITE);
            #pragma omp parallel reduction(+ : wrong)
                {
                    a[page * (omp_get_thread_num() % 4)] = round + 1;
            #pragma omp barrier
                    wrong += a[0] != round + 1;
                }
            }
            printf("%d wrong\\n", wrong);
        }""", *FLAGS)
    expect(bench.run(program), 0, "0 wrong\n", "")


def soft_dirty(bench):
    """Bits that the kernel of each node keeps for itself are refused before anything is printed."""
    program = bench.build("soft", HEAD + """
        int main(int argc, char** argv) {
            FILE* stream = argc > 1 ? fopen("/proc/self/clear_refs", "w") : NULL;
            int fd = argc > 1 ? -1 : open("/proc/self/clear_refs", O_WRONLY);
            puts("opened");
        }""", *FLAGS)
    expect(bench.run(program), 78, "", "clear_refs refused")
    expect(bench.run(program, "stream"), 78, "", "clear_refs refused")


CASES = [direct_files, own_memory, shared_files, reservations, large_thread_data, allocators,
         guard_pages, dirty_pages, mapped_to_be_read, memory_of_others, soft_dirty]


if __name__ == "__main__":
    sys.exit(main(CASES))
