// SPDX-License-Identifier: BSD-3-Clause
// C++ inside a parallel region: vectors that grow on any thread, strings, virtual functions, a
// reduction, and exceptions thrown and caught within the region. Usage: ./vectors [elements]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Shape {
    virtual ~Shape() = default;
    virtual long area() const = 0;
};
struct Square final : Shape {
    explicit Square(long side) : side_(side) {}
    long area() const override { return side_ * side_; }
    long side_;
};
struct Strip final : Shape {
    explicit Strip(long length) : length_(length) {}
    long area() const override { return length_; }
    long length_;
};

/// Throws for every seventh number.
long checked(long i) {
    if (i % 7 == 0) throw std::out_of_range("number " + std::to_string(i));
    return i;
}

}  // namespace

int main(int argc, char** argv) {
    const long n = argc > 1 ? std::atol(argv[1]) : 4000;
    if (n < 1) {
        std::fprintf(stderr, "usage: vectors [elements, 1 or more]\n");
        return 2;
    }
    const auto start = std::chrono::steady_clock::now();

    std::vector<std::vector<long>> rows(static_cast<std::size_t>(n));
    std::vector<std::string> names(rows.size());
    std::vector<std::unique_ptr<Shape>> shapes(rows.size());
    long caught = 0, sum = 0, area = 0;
#pragma omp parallel for reduction(+ : caught, sum)
    for (long i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        for (long k = 0; k <= i % 50; ++k) rows[at].push_back(i + k);
        names[at] = "row number " + std::to_string(i) + ", too long for the small buffer";
        if (i % 2 == 0) {
            shapes[at] = std::make_unique<Square>(i % 100);
        } else {
            shapes[at] = std::make_unique<Strip>(i);
        }
        try {
            sum += checked(i);
        } catch (const std::out_of_range& error) {
            caught += error.what() == "number " + std::to_string(i) ? 1 : 1000000;
        }
    }
    // Each element now meets another thread than the one that made it.
#pragma omp parallel for reduction(+ : area)
    for (long i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(n - 1 - i);
        area += shapes[at]->area();
        shapes[at].reset();
        rows[at].resize(rows[at].size() + 1, -1);
    }

    long expected_caught = 0, expected_sum = 0, expected_area = 0;
    bool good = true;
    for (long i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        i % 7 == 0 ? ++expected_caught : expected_sum += i;
        expected_area += i % 2 == 0 ? (i % 100) * (i % 100) : i;
        const long length = i % 50 + 1;
        good &= std::accumulate(rows[at].begin(), rows[at].end(), 0L) ==
                length * i + length * (length - 1) / 2 - 1;
        good &= rows[at].size() == static_cast<std::size_t>(length) + 1;
        good &= names[at] == "row number " + std::to_string(i) + ", too long for the small buffer";
    }
    good &= caught == expected_caught && sum == expected_sum && area == expected_area;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("VECTORS %ld elements %ld caught seconds %.3f VERIFICATION %s\n", n, caught,
                seconds.count(), good ? "SUCCESSFUL" : "FAILED");
    return good ? 0 : 1;
}
