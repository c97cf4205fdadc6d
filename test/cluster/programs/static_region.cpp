// SPDX-License-Identifier: BSD-3-Clause
// Static constructors run once, on one node, may hold regions, and are undone once.
#include <omp.h>

#include <cstdio>
#include <iostream>
#include <numeric>
#include <vector>

namespace {

int constructed = 0;

struct Table {
    std::vector<long> squares;
    Table() : squares(10000) {
        ++constructed;
#pragma omp parallel for
        for (long i = 0; i < 10000; ++i) squares[static_cast<std::size_t>(i)] = i * i;
    }
    ~Table() {
        long sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (long i = 0; i < 10000; ++i) sum += squares[static_cast<std::size_t>(i)];
        std::printf("destructor: %ld\n", sum);
    }
};
Table table;

}  // namespace

int main() {
    std::cout << "constructed " << constructed << " times, sum "
              << std::accumulate(table.squares.begin(), table.squares.end(), 0L) << std::endl;
    int seen = 0;
#pragma omp parallel reduction(+ : seen)
    seen += constructed;
    std::cout << "every thread sees one: " << (seen == omp_get_max_threads()) << std::endl;
    return 0;
}
