// SPDX-License-Identifier: BSD-3-Clause
// Role: OpenACC where the host is the only device: constructs, data, asynchronous queues and the
// functions of openacc.h; beside regions of OpenMP that go on with what it has computed.
#include <openacc.h>
#include <stdio.h>
#include <stdlib.h>

enum { length = 20000 };
static double x[length], y[length];
static int declared[100];
#pragma acc declare create(declared)

#pragma acc routine seq
static double square(double value) { return value * value; }

static void constructs(void) {
    double sum = 0;
    int most = 0;
#pragma acc data copyin(x) copy(y)
    {
#pragma acc parallel loop present(x, y) num_gangs(4) vector_length(32)
        for (int i = 0; i < length; ++i) y[i] += 2 * square(x[i]);
#pragma acc kernels
        for (int i = 1; i < length; ++i) y[i] += y[i - 1] / length;
#pragma acc parallel loop reduction(+ : sum) reduction(max : most) async(1)
        for (int i = 0; i < length; ++i) {
            sum += y[i];
            if (i % 977 > most) most = i % 977;
        }
#pragma acc wait(1)
#pragma acc update self(y [0:10])
    }
    printf("%.6e %d\n", sum, most);
    int first = 5, last = 0;
#pragma acc serial firstprivate(first) copyout(last)
    {
        first += 2;
        last = first;
    }
    printf("%d %d\n", first, last);
#pragma acc enter data copyin(x [0:100]) async(2)
#pragma acc update device(x [0:100]) wait(2)
#pragma acc exit data delete (x [0:100])finalize
#pragma acc parallel loop gang worker collapse(2)
    for (int i = 0; i < 10; ++i)
        for (int j = 0; j < 10; ++j) declared[i * 10 + j] = i * j;
#pragma acc atomic update
    declared[0] += 7;
#pragma acc wait
    printf("%d %d\n", declared[0], declared[99]);
#pragma acc host_data use_device(x)
    printf("%d\n", x == (double*)acc_deviceptr(x));
}

static void functions(void) {
    printf("%d %d %d %d\n", acc_get_num_devices(acc_device_host),
           acc_get_num_devices(acc_device_default), acc_get_num_devices(acc_device_not_host),
           acc_get_num_devices(acc_device_nvidia));
    acc_set_device_type(acc_device_host);
    acc_set_device_num(0, acc_device_host);
    printf("%d %d\n", acc_get_device_type(), acc_get_device_num(acc_device_host));
    printf("%s %s %s\n", acc_get_property_string(0, acc_device_host, acc_property_name),
           acc_get_property_string(0, acc_device_host, acc_property_vendor),
           acc_get_property_string(0, acc_device_host, acc_property_driver));
    int values[10] = {1, 2, 3}, copies[10] = {0};
    printf("%d %d\n", acc_copyin(values, sizeof values) == values,
           acc_create(values, sizeof values) == values);
    printf("%d %d\n", acc_is_present(values, sizeof values), acc_is_present(values, 0));
    acc_update_device(values, sizeof values);
    acc_update_self_async(values, sizeof values, 1);
    acc_copyout(values, sizeof values);
    acc_delete(values, sizeof values);
    void* const block = acc_malloc(sizeof values);
    acc_memcpy_to_device(block, values, sizeof values);
    acc_memcpy_from_device(copies, block, sizeof values);
    acc_free(block);
    printf("%d %p\n", copies[2], acc_malloc(0));
    acc_wait(1);
    acc_wait_all();
    printf("%d %d\n", acc_async_test(1), acc_async_test_all());
}

int main(int argc, char** argv) {
    for (int i = 0; i < length; ++i) x[i] = i * 1e-3;
    acc_init(acc_device_default);
    constructs();
    functions();
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < length; ++i) {
        y[i] += 1;
        sum += y[i];
    }
#pragma acc parallel loop
    for (int i = 0; i < length; ++i) x[i] = y[i];
    acc_shutdown(acc_device_host);
    printf("%.6e %.6e\n", sum, x[length - 1]);
    if (argc > 1) acc_set_device_type(argv[1][0] == 'n' ? acc_device_nvidia : acc_device_not_host);
    return 0;
}
