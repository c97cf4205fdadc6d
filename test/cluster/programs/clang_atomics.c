// SPDX-License-Identifier: BSD-3-Clause
// Atomics as calls, which no clang makes: each kind of entry point, declared here.
#include <complex.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

extern int __kmpc_global_thread_num(void*);
extern void __kmpc_atomic_fixed1_add(void*, int, int8_t*, int8_t);
extern void __kmpc_atomic_fixed2_xor(void*, int, int16_t*, int16_t);
extern void __kmpc_atomic_fixed4_max(void*, int, int32_t*, int32_t);
extern int32_t __kmpc_atomic_fixed4_add_cpt(void*, int, int32_t*, int32_t, int);
extern void __kmpc_atomic_fixed8_sub(void*, int, int64_t*, int64_t);
extern void __kmpc_atomic_fixed8_sub_rev(void*, int, int64_t*, int64_t);
extern void __kmpc_atomic_fixed8u_div(void*, int, uint64_t*, uint64_t);
extern void __kmpc_atomic_float4_add(void*, int, float*, float);
extern void __kmpc_atomic_float8_add(void*, int, double*, double);
extern void __kmpc_atomic_float10_add(void*, int, long double*, long double);
extern void __kmpc_atomic_cmplx4_add(void*, int, float _Complex*, float _Complex);
extern void __kmpc_atomic_cmplx8_add(void*, int, double _Complex*, double _Complex);
extern double __kmpc_atomic_float8_rd(void*, int, double*);
extern void __kmpc_atomic_float8_wr(void*, int, double*, double);
extern int32_t __kmpc_atomic_fixed4_swp(void*, int, int32_t*, int32_t);
extern void __kmpc_atomic_4(void*, int, void*, void*, void (*)(void*, void*, void*));
extern void __kmpc_atomic_16(void*, int, void*, void*, void (*)(void*, void*, void*));
extern void __kmpc_atomic_start(void);
extern void __kmpc_atomic_end(void);

static int wrong;
static struct {
    int8_t small;
    int16_t bits;
    int32_t most, counter, twice, exchanged;
    int64_t down;
    uint64_t halved;
    float f;
    double d;
    long double wide;
    float _Complex z;
    double _Complex w, together;
    long guarded;
} s;

static void check(const char* what, int right) {
    printf("%s %s\n", right ? "right" : "WRONG", what);
    if (!right) ++wrong;
}

static void add_ints(void* result, void* left, void* right) {
    *(int32_t*)result = *(int32_t*)left + *(int32_t*)right;
}
static void add_complex(void* result, void* left, void* right) {
    *(double _Complex*)result = *(double _Complex*)left + *(double _Complex*)right;
}

int main(void) {
    enum { rounds = 40 };
    int threads = 0, numbers = 0;
    s.halved = 1ull << 63;
#pragma omp parallel reduction(+ : numbers)
    {
        const int me = __kmpc_global_thread_num(0);
#pragma omp master
        threads = omp_get_num_threads();
        for (int k = 0; k < rounds; k++) {
            __kmpc_atomic_fixed1_add(0, me, &s.small, 1);
            __kmpc_atomic_fixed2_xor(0, me, &s.bits, 3);
            const int32_t number = __kmpc_atomic_fixed4_add_cpt(0, me, &s.counter, 1, 0);
            __kmpc_atomic_fixed4_max(0, me, &s.most, number);
            numbers += number;
            __kmpc_atomic_fixed8_sub(0, me, &s.down, 7);
            __kmpc_atomic_float4_add(0, me, &s.f, 0.5f);
            __kmpc_atomic_float8_add(0, me, &s.d, 0.25);
            __kmpc_atomic_float10_add(0, me, &s.wide, 1);
            __kmpc_atomic_cmplx4_add(0, me, &s.z, 1 + 2 * I);
            __kmpc_atomic_cmplx8_add(0, me, &s.w, 2 + 1 * I);
            int32_t two = 2;
            __kmpc_atomic_4(0, me, &s.twice, &two, add_ints);
            double _Complex one = 1 - 1 * I;
            __kmpc_atomic_16(0, me, &s.together, &one, add_complex);
            __kmpc_atomic_start();
            s.guarded++;
            __kmpc_atomic_end();
        }
#pragma omp barrier
#pragma omp single
        {
            __kmpc_atomic_fixed8u_div(0, me, &s.halved, 4);
            s.exchanged = 5;
        }
    }
    const int all = threads * rounds;
    check("integers", s.small == (int8_t)all && s.bits == (all & 1 ? 3 : 0) && s.down == -7L * all);
    check("capture",
          s.counter == all && s.most == all - 1 && numbers == (int)((long)all * (all - 1) / 2));
    check("floating point", s.f == 0.5f * (float)all && s.d == 0.25 * all && s.wide == all);
    check("complex", creal(s.z) == all && cimag(s.z) == 2.0 * all && creal(s.w) == 2.0 * all &&
                         cimag(s.w) == all);
    check("by a function",
          s.twice == 2 * all && creal(s.together) == all && cimag(s.together) == -all);
    check("the lock", s.guarded == all);
    const int me = __kmpc_global_thread_num(0);
    s.down = 30;
    __kmpc_atomic_fixed8_sub_rev(0, me, &s.down, 100);
    __kmpc_atomic_float8_wr(0, me, &s.d, 12.5);
    check("reversed, read, written, exchanged",
          s.down == 70 && __kmpc_atomic_float8_rd(0, me, &s.d) == 12.5 &&
              __kmpc_atomic_fixed4_swp(0, me, &s.exchanged, 9) == 5 && s.exchanged == 9 &&
              s.halved == 1ull << 61);
    return wrong;
}
