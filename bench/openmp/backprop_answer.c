// SPDX-License-Identifier: BSD-3-Clause
// Role: the answer of Rodinia's backprop, which prints none: linked with it and
// -Wl,--wrap=bpnn_free, it prints the sums of the weights and of their last changes before they are
// freed.
#include <math.h>
#include <stdio.h>

#include "backprop.h"

void __real_bpnn_free(BPNN* net);

static void print_sums(const char* name, float** rows, int height, int width) {
    double sum = 0, sizes = 0;
    for (int i = 0; i <= height; ++i)
        for (int j = 0; j <= width; ++j) {
            sum += rows[i][j];
            sizes += fabs(rows[i][j]);
        }
    printf("%s %.9g %.9g\n", name, sum, sizes);
}

void __wrap_bpnn_free(BPNN* net) {
    print_sums("input weights", net->input_weights, net->input_n, net->hidden_n);
    print_sums("input changes", net->input_prev_weights, net->input_n, net->hidden_n);
    print_sums("hidden weights", net->hidden_weights, net->hidden_n, net->output_n);
    print_sums("hidden changes", net->hidden_prev_weights, net->hidden_n, net->output_n);
    __real_bpnn_free(net);
}
