// SPDX-License-Identifier: BSD-3-Clause
// Heat in a plate whose rows are dealt out to the nodes: windows carry the rows at the borders, and
// a maximum over all nodes says when nothing changes any more.
// Run: hiroba run --spmd -n 2 ./kick_plate [rows of a node] [steps at most]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hiroba/kick.hpp"

namespace {

namespace kick = hiroba::kick;
namespace net = hiroba::net;
using hiroba::NodeId;

constexpr std::size_t columns = 96;
constexpr std::uint32_t row_bytes = columns * sizeof(double);
static_assert(row_bytes <= kick::Window::bytes_max);
using Row = std::vector<double>;
using Rows = std::vector<Row>;  // the first and the last are the neighbours', or the rim

/// One step of Jacobi's iteration. @return the largest change
double relax(const Rows& from, Rows& to) {
    double most = 0;
    for (std::size_t row = 1; row + 1 < from.size(); ++row) {
        for (std::size_t column = 1; column + 1 < columns; ++column) {
            const double value = 0.25 * (from[row - 1][column] + from[row + 1][column] +
                                         from[row][column - 1] + from[row][column + 1]);
            most = std::max(most, std::abs(value - from[row][column]));
            to[row][column] = value;
        }
    }
    return most;
}

/// All rows `first` to `last` at the beginning: the upper rim of the plate is hot.
Rows rows_of(std::size_t count, bool is_first) {
    Rows rows(count + 2, Row(columns, 0.0));
    if (is_first) rows.front().assign(columns, 100.0);
    return rows;
}

/// The same plate on one node.
Rows alone(std::size_t rows, std::uint64_t steps, double tolerance) {
    Rows now = rows_of(rows, true), next = now;
    for (std::uint64_t step = 0; step < steps; ++step) {
        const double change = relax(now, next);
        std::swap(now, next);
        if (change < tolerance) break;
    }
    return now;
}

void send_row(kick::Window& window, const Row& row) {
    window.await_room();
    std::memcpy(window.payload().data(), row.data(), row_bytes);
    window.send(row_bytes);
}

void receive_row(kick::Window& window, Row& row) {
    std::memcpy(row.data(), window.receive().data(), row_bytes);
    window.take();
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 32;
    const std::uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 400;
    constexpr double tolerance = 1e-3;
    if (rows == 0 || steps == 0) {
        std::fprintf(stderr, "usage: kick_plate [rows, from 1] [steps, from 1]\n");
        return 64;
    }
    std::string why;
    const auto network = net::Network::open(&why);
    const auto board = network == nullptr ? nullptr : kick::Board::make(*network, &why);
    if (board == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const std::uint32_t self = board->self().value, nodes = board->nodes();
    const auto above = self > 0 ? std::optional(NodeId{self - 1}) : std::nullopt;
    const auto below = self + 1 < nodes ? std::optional(NodeId{self + 1}) : std::nullopt;
    const auto down = board->window(row_bytes, below, above, &why);
    const auto up = board->window(row_bytes, above, below, &why);
    auto largest = board->all_reduce<double>();
    if (down == nullptr || up == nullptr || !largest || !network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    Rows now = rows_of(rows, self == 0), next = now;
    std::uint64_t done = 0;
    while (done < steps) {
        const double change = relax(now, next);
        std::swap(now, next);
        ++done;
        if (below) send_row(*down, now[rows]);
        if (above) send_row(*up, now[1]);
        if (above) receive_row(*down, now[0]);
        if (below) receive_row(*up, now[rows + 1]);
        if ((*largest)(change, [](double a, double b) { return std::max(a, b); }) < tolerance)
            break;
    }
    // Each cell is computed from the same values in the same order, so the bits are the same.
    const Rows wanted = alone(rows * nodes, steps, tolerance);
    double wrong = 0;
    for (std::size_t row = 1; row <= rows; ++row)
        if (now[row] != wanted[self * rows + row]) wrong = 1;
    wrong = (*largest)(wrong, [](double a, double b) { return std::max(a, b); });
    if (self == 0) {
        std::printf("%lu rows on each of %u nodes, %lu steps: VERIFICATION %s\n", rows, nodes, done,
                    wrong == 0 ? "SUCCESSFUL" : "FAILED");
    }
    return wrong == 0 ? 0 : 1;
}
