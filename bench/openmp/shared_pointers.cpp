// SPDX-License-Identifier: BSD-3-Clause
// Role: copies of shared pointers to objects of one's own: two atomics each, on memory that no
// other thread uses. Prints the seconds of all regions.
#include <omp.h>

#include <cstdio>
#include <memory>
#include <vector>
struct Cell {
    double v;
};
int main() {
    const int threads = omp_get_max_threads();
    std::vector<std::vector<std::shared_ptr<Cell>>> all(threads);
    double sum = 0;
    const double begin = omp_get_wtime();
    for (int round = 0; round < 200; ++round) {
#pragma omp parallel reduction(+ : sum)
        {
            auto& mine = all[omp_get_thread_num()];
            if (mine.empty())
                for (int i = 0; i < 2000; ++i)
                    mine.push_back(std::make_shared<Cell>(Cell{double(i)}));
            for (int r = 0; r < 50; ++r)
                for (int i = 0; i < 2000; ++i) {
                    std::shared_ptr<Cell> p = mine[(i * 7 + r) % 2000];
                    sum += p->v;
                }
        }
    }
    std::printf("sum %.0f seconds %.3f\n", sum, omp_get_wtime() - begin);
}
