// SPDX-License-Identifier: BSD-3-Clause
// Atomic instructions in code that the program generates: counts, flags and registers as the
// processor has them; a barrier as oneDNN generates it, which spins on a plain word; constants
// among the code that look like them.
#define _GNU_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4096, TURNS = 40 };

static unsigned char* code;
static size_t used;

/// Code at a page of its own.
static void* emit(const void* bytes, size_t count) {
    unsigned char* const at = code + used;
    memcpy(at, bytes, count);
    used += BYTES;
    return at;
}
#define EMIT(...) \
    emit((const unsigned char[]){__VA_ARGS__}, sizeof(const unsigned char[]){__VA_ARGS__})

typedef uint64_t Change(void* word, uint64_t source, uint64_t accumulator);

// mov %rdx,%rax first; what it returns is made of the flags (lahf, seto) and what the instruction
// leaves in rax and rsi: mov %rax,%r8; lahf; seto %al; movzwl %ax,%eax; shl $32,%rax; xor %r8,%rax;
// rol $7,%rax; xor %rsi,%rax; ret
#define BEGIN 0x48, 0x89, 0xd0
#define END                                                                                   \
    0x49, 0x89, 0xc0, 0x9f, 0x0f, 0x90, 0xc0, 0x0f, 0xb7, 0xc0, 0x48, 0xc1, 0xe0, 0x20, 0x4c, \
        0x31, 0xc0, 0x48, 0xc1, 0xc0, 0x07, 0x48, 0x31, 0xf0, 0xc3

static Change* changes[32];
static int count;

static void make_changes(void) {
#define ADD(...) changes[count++] = (Change*)EMIT(BEGIN, __VA_ARGS__, END)
    ADD(0xf0, 0x0f, 0xc1, 0x37);                          // lock xadd %esi,(%rdi)
    ADD(0xf0, 0x48, 0x0f, 0xc1, 0x37);                    // %rsi
    ADD(0xf0, 0x40, 0x0f, 0xc0, 0x37);                    // %sil
    ADD(0x90, 0xf0, 0x48, 0x01, 0x37);                    // lock add %rsi,(%rdi)
    ADD(0xf0, 0x83, 0x07, 0xff);                          // lock addl $-1,(%rdi)
    ADD(0xf0, 0x48, 0x29, 0x37);                          // lock sub
    ADD(0xf0, 0x21, 0x37);                                // lock and %esi
    ADD(0xf0, 0x48, 0x09, 0x37);                          // lock or
    ADD(0xf0, 0x48, 0x31, 0x37);                          // lock xor
    ADD(0xf9, 0xf0, 0xff, 0x07);                          // stc; lock incl
    ADD(0xf8, 0xf0, 0x48, 0xff, 0x0f);                    // clc; lock decq
    ADD(0xf0, 0x48, 0x0f, 0xb1, 0x37);                    // lock cmpxchg %rsi,(%rdi)
    ADD(0xf0, 0x0f, 0xb1, 0x77, 0x00);                    // lock cmpxchg %esi,0(%rdi)
    ADD(0x31, 0xc9, 0xf0, 0x0f, 0xc1, 0x74, 0x4f, 0x00);  // xor %ecx,%ecx; xadd %esi,0(%rdi,%rcx,2)
}

/// What one thread sees is the same wherever it runs.
static uint64_t digest(void) {
    static uint64_t word;
    static const uint64_t values[] = {
        0,          1,    0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff,
        1ull << 63, ~0ull};
    uint64_t sum = 0;
    for (int which = 0; which < count; ++which)
        for (size_t i = 0; i < sizeof values / 8; ++i)
            for (size_t j = 0; j < sizeof values / 8; ++j)
                for (size_t k = 0; k < 2; ++k) {
                    word = values[i];
                    const uint64_t made =
                        changes[which](&word, values[j], k == 0 ? values[i] : values[j]);
                    sum = sum * 0x9e3779b97f4a7c15 + (made & ~((uint64_t)0x10 << 47)) + word;
                }
    return sum;
}

typedef void Barrier(void* words, uint64_t threads);

int main(void) {
    const int threads = omp_get_max_threads();
    code = mmap(NULL, 64 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    make_changes();
    // words: the count, and 64 bytes behind it whose turn it is.
    Barrier* const barrier =
        (Barrier*)EMIT(0x4c, 0x8b, 0x47, 0x40,                    // mov 64(%rdi),%r8
                       0xb8, 0x01, 0x00, 0x00, 0x00,              // mov $1,%eax
                       0xf0, 0x48, 0x0f, 0xc1, 0x07,              // lock xadd %rax,(%rdi)
                       0x48, 0xff, 0xc0, 0x48, 0x39, 0xf0,        // inc %rax; cmp %rsi,%rax
                       0x75, 0x0f,                                // jne wait
                       0x48, 0xc7, 0x07, 0x00, 0x00, 0x00, 0x00,  // movq $0,(%rdi)
                       0x49, 0xf7, 0xd0,                          // not %r8
                       0x4c, 0x89, 0x47, 0x40,                    // mov %r8,64(%rdi)
                       0xc3,                                      // ret
                       0xf3, 0x90, 0x4c, 0x3b, 0x47, 0x40,        // wait: pause; cmp 64(%rdi),%r8
                       0x74, 0xf8, 0xc3);                         // je wait; ret
    // mov 1(%rip),%eax; ret; and four bytes that are no instruction.
    uint32_t (*const constant)(void) =
        (uint32_t(*)(void))EMIT(0x8b, 0x05, 0x01, 0, 0, 0, 0xc3, 0xf0, 0x0f, 0xc1, 0x37);
    for (size_t at = 0; at < used; at += BYTES) mprotect(code + at, BYTES, PROT_READ | PROT_EXEC);

    static uint64_t total, words[16], seen[1024];
    static uint32_t taken;
    const uint64_t right = digest();
    int wrong = constant() != 0x37c10ff0;
#pragma omp parallel reduction(+ : wrong)
    {
        const int self = omp_get_thread_num();
        for (int i = 0; i < TURNS; ++i) {
#pragma omp barrier
            changes[3](&total, 3, 0);
            // Each number once.
            for (uint32_t now = *(volatile uint32_t*)&taken;;) {
                const uint32_t before = now;
                changes[12](&taken, now + 1, now);
                now = *(volatile uint32_t*)&taken;
                if (now != before) break;
            }
        }
        for (int i = 0; i < 20; ++i) {
            seen[64 * self] = i;
            barrier(words, threads);
            for (int other = 0; other < threads; ++other) wrong += seen[64 * other] != (uint64_t)i;
            barrier(words, threads);
        }
        wrong += constant() != 0x37c10ff0;
#pragma omp critical
        wrong += digest() != right;
    }
    printf("%016lx %lu wrong %d\n", (unsigned long)right, (unsigned long)total, wrong);
    return wrong != 0;
}
