// SPDX-License-Identifier: BSD-3-Clause
// std::cout works on every thread for both settings of sync_with_stdio(), in the order of regions.
#include <omp.h>

#include <cstring>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>

int main(int argc, char** argv) {
    if (argc > 1 && !std::strcmp(argv[1], "unsynchronized")) std::ios_base::sync_with_stdio(false);
    const int threads = omp_get_max_threads();
    std::cout << std::fixed << std::setprecision(3) << 1.0 / 3 << '\n';
    int caught = 0;
    for (int turn = 0; turn < 2 * threads; ++turn) {
#pragma omp parallel reduction(+ : caught)
        {
            try {
                if (omp_get_thread_num() == turn % threads) throw std::runtime_error("mine");
            } catch (const std::exception& error) {
                std::cout << "thread " << turn % threads << " threw " << error.what() << '\n';
                ++caught;
            }
        }
        std::cout << "main after " << turn << '\n';
    }
    std::cout << "caught " << caught << std::endl;
    // stdout is a stream of bytes by now, which takes the low ones.
    if (argc == 1) std::wcout << L"wide \u00e4" << std::endl;
    std::cout << std::wcout.good() << std::endl;
    if (argc > 2 && !std::strcmp(argv[2], "throw")) throw std::logic_error("nobody catches this");
    return 0;
}
