// SPDX-License-Identifier: BSD-3-Clause
// Particles with a moving hot spot, on the relocatable global address space.
// Run: hiroba run --spmd -n 2 build/examples/gas_particles [cells] [iterations]
//
// A row of cells, each a page of particles on springs. Near the hot spot particles are stiff and
// take many small time steps, so the work moves through the row, and after each iteration the cells
// are dealt out anew, in equal shares of work. Data can stay where they were, so that a rank gets
// and puts cells of others; or follow the work by one own() of the rank's new share. The same code
// does both; each prints its time and what crossed between ranks, and both end with the same bits.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "hiroba/gas.hpp"

namespace {

namespace gas = hiroba::gas;

struct Particle {
    double place, speed, mass, rest;
};
constexpr int particles_of_cell = 127;
struct Cell {
    double number, mean, unused[2];
    Particle particles[particles_of_cell];
};
static_assert(sizeof(Cell) == 4096);

void check(const gas::Status& status) {
    if (status) return;
    std::fprintf(stderr, "%s\n", status.text().c_str());
    std::exit(1);
}

/// Time steps that a cell takes while the hot spot is at `hot`.
int steps_of(double cell, double hot, double cells) {
    const double distance = (cell - hot) / (cells * 0.05);
    return 1 + static_cast<int>(60 * std::exp(-distance * distance));
}

/// One iteration of a cell between its neighbours' means.
void advance(Cell& cell, double left, double right, int steps) {
    const double dt = 0.1 / steps;
    for (int step = 0; step < steps; ++step) {
        double sum = 0;
        for (Particle& p : cell.particles) {
            const double pull = p.rest - p.place + 0.1 * (left + right - 2 * cell.mean);
            p.speed += dt * steps * pull / p.mass;
            p.place += dt * p.speed;
            sum += p.place;
        }
        cell.mean = sum / particles_of_cell;
    }
}

struct Share {
    std::int64_t first, count;
};

class Simulation {
public:
    Simulation(gas::space& space, std::int64_t cells, bool relocates)
        : space_(space), cells_(cells), relocates_(relocates) {
        const auto block = gas::Distribution::block();
        row_ = space.allocate_together<Cell>(static_cast<std::uint64_t>(cells), block);
        // Means and work of all cells, of even and odd iterations.
        means_ = space.allocate_together<double>(2 * static_cast<std::uint64_t>(cells), block);
        work_ = space.allocate_together<double>(static_cast<std::uint64_t>(cells), block);
        if (!row_ || !means_ || !work_) {
            std::fprintf(stderr, "no room for %ld cells: see HIROBA_GAS\n", cells);
            std::exit(1);
        }
        all_means_.resize(static_cast<std::size_t>(cells));
        all_work_.assign(static_cast<std::size_t>(cells), 1.0);
        mine_ = share();
        for (std::int64_t i = mine_.first; i < mine_.first + mine_.count; ++i) place(i);
        space.barrier();
    }

    void iterate(int iteration, double hot) {
        const auto parity = means_ + iteration % 2 * cells_;
        const auto next = means_ + (iteration + 1) % 2 * cells_;
        check(space_.get(parity, std::span<double>(all_means_)));
        for (std::int64_t i = mine_.first; i < mine_.first + mine_.count; ++i) {
            const int steps = steps_of(static_cast<double>(i), hot, static_cast<double>(cells_));
            const double left = all_means_[static_cast<std::size_t>(i == 0 ? 0 : i - 1)];
            const double right = all_means_[static_cast<std::size_t>(i + 1 == cells_ ? i : i + 1)];
            const double mean = update(i, [&](Cell& cell) { advance(cell, left, right, steps); });
            check(space_.put(next + i, mean));
            check(space_.put(work_ + i, static_cast<double>(steps)));
        }
        space_.barrier();
        // Each node deals the cells out, all alike.
        check(space_.get(work_, std::span<double>(all_work_)));
        mine_ = share();
        if (relocates_ && mine_.count != 0) {
            check(space_.own(row_ + mine_.first, static_cast<std::uint64_t>(mine_.count)));
        }
        space_.barrier();
    }

    /// The same on every rank, bit for bit.
    double sum() {
        double total = 0;
        std::vector<Cell> cell(1);
        for (std::int64_t i = 0; i < cells_; ++i) {
            check(space_.get(row_ + i, std::span<Cell>(cell)));
            for (const Particle& p : cell[0].particles) total += p.place * p.mass;
        }
        space_.barrier();
        return total;
    }
    void free() {
        check(space_.free(row_));
        check(space_.free(means_));
        check(space_.free(work_));
    }

private:
    /// Runs `change` on a cell, in place if it is here, and returns its mean.
    template <class Change>
    double update(std::int64_t i, Change&& change) {
        if (const auto view = space_.local(row_ + i, 1)) {
            change(view[0]);
            return view[0].mean;
        }
        Cell cell;
        check(space_.get(row_ + i, cell));
        change(cell);
        check(space_.put(row_ + i, cell));
        return cell.mean;
    }
    void place(std::int64_t i) {
        const double mean = update(i, [&](Cell& cell) {
            cell.number = static_cast<double>(i);
            for (int k = 0; k < particles_of_cell; ++k) {
                const double rest = std::sin(static_cast<double>(i * 131 + k));
                cell.particles[k] = {1.5 * rest, 0, 1 + 0.001 * k, rest};
                cell.mean += 1.5 * rest / particles_of_cell;
            }
        });
        check(space_.put(means_ + i, mean));
    }
    /// Cells in a row whose work is this rank's part of all.
    Share share() const {
        double all = 0;
        for (const double work : all_work_) all += work;
        const double begin = all * space_.rank() / space_.ranks();
        const double end = all * (space_.rank() + 1) / space_.ranks();
        Share share{0, 0};
        double sum = 0;
        for (std::int64_t i = 0; i < cells_; ++i) {
            if (sum < begin) share.first = i + 1;
            if (sum >= begin && sum < end) ++share.count;
            sum += all_work_[static_cast<std::size_t>(i)];
        }
        return share;
    }

    gas::space& space_;
    std::int64_t cells_;
    bool relocates_;
    gas::ptr<Cell> row_;
    gas::ptr<double> means_, work_;
    std::vector<double> all_means_, all_work_;
    Share mine_{0, 0};
};

/// Sum over all ranks.
std::uint64_t total(gas::space& space, std::uint64_t mine) {
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < space.ranks(); ++rank) sum += space.broadcast(mine, rank);
    return sum;
}

struct Outcome {
    double seconds, sum;
    std::uint64_t bytes;  ///< between ranks, in each iteration
};

Outcome run(gas::space& space, std::int64_t cells, int iterations, bool relocates) {
    Simulation simulation{space, cells, relocates};
    const gas::Counts before = space.counts();
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < iterations; ++i) {
        const double phase = static_cast<double>(i) / iterations;
        simulation.iterate(i, static_cast<double>(cells) * (0.1 + 0.8 * phase));
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    const gas::Counts after = space.counts();
    const std::uint64_t bytes =
        after.bytes_elsewhere - before.bytes_elsewhere + after.bytes_moved - before.bytes_moved;
    const Outcome outcome{spent.count(), simulation.sum(),
                          total(space, bytes) / static_cast<std::uint64_t>(iterations)};
    simulation.free();
    return outcome;
}

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t cells = argc > 1 ? std::atol(argv[1]) : 256;
    const int iterations = argc > 2 ? std::atoi(argv[2]) : 40;
    if (cells < 2 || iterations < 1) {
        std::fprintf(stderr, "usage: gas_particles [cells, from 2] [iterations, from 1]\n");
        return 64;
    }
    std::string why;
    const auto space = gas::space::open(&why);
    if (space == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const Outcome stays = run(*space, cells, iterations, false);
    const Outcome follows = run(*space, cells, iterations, true);
    if (space->rank() == 0) {
        std::printf("%ld cells on %u ranks, %d iterations\n", cells, space->ranks(), iterations);
        std::printf("  data stay:   %8.3f s, %10lu bytes between ranks in an iteration\n",
                    stays.seconds, stays.bytes);
        std::printf("  data follow: %8.3f s, %10lu bytes between ranks in an iteration\n",
                    follows.seconds, follows.bytes);
        const bool same = stays.sum == follows.sum && std::isfinite(stays.sum);
        std::printf("  ratio of bytes %.2f; sum %.12g: VERIFICATION %s\n",
                    static_cast<double>(follows.bytes) / static_cast<double>(stays.bytes + 1),
                    stays.sum, same ? "SUCCESSFUL" : "FAILED");
    }
    return 0;
}
