// SPDX-License-Identifier: BSD-3-Clause
// A std::ofstream and std::cin of the first thread, used by all in turn.
#include <omp.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

int main() {
    const std::string path = "/tmp/streams_of_others_" + std::to_string(getpid());
    std::ofstream out(path);
    out << "first\n";
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
#pragma omp ordered
        {
            out << "turn " << i << ' ' << std::string(static_cast<std::size_t>(i) * 2000, 'x');
            out << std::endl;
        }
    }
    out << "last\n";
    out.close();

    std::ifstream in(path);
    std::size_t bytes = 0;
    for (std::string line; std::getline(in, line);) {
        std::cout << line.substr(0, 12) << '\n';
        bytes += line.size();
    }
    std::cout << bytes << " bytes" << std::endl;
    std::remove(path.c_str());

    std::string line;
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 4; ++i) {
#pragma omp ordered
        if (std::getline(std::cin, line)) std::cout << i << ": " << line << std::endl;
    }
}
