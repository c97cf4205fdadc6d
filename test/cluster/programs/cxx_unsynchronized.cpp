// SPDX-License-Identifier: BSD-3-Clause
// std::cout and std::cin after sync_with_stdio(false): what threads of several nodes write comes in
// the order of their synchronization, and a line that one has read another does not miss.
#include <omp.h>

#include <iomanip>
#include <iostream>
#include <string>

int main() {
    std::cout << std::boolalpha << std::ios_base::sync_with_stdio(false) << '\n';
    std::cin.tie(nullptr);
    for (int round = 0; round < 3; ++round) {
#pragma omp parallel for ordered schedule(static, 1) num_threads(4)
        for (int i = 0; i < 8; ++i) {
            const std::string name = "round " + std::to_string(round) + " step ";
#pragma omp ordered
            std::cout << name << i << ' ' << std::setprecision(3) << i / 3.0 << '\n';
        }
        std::cout << "between\n";
    }
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 8; ++i) {
        if (omp_get_thread_num() == i % 4) {
            std::string line;
            std::getline(std::cin, line);
            std::cout << "turn " << i << ": " << line << '\n';
        }
#pragma omp barrier
    }
    std::cout << std::ios_base::sync_with_stdio(true) << " at the end" << std::endl;
}
