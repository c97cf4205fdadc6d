// SPDX-License-Identifier: BSD-3-Clause
// Bodies that attract each other, by a tree of squares (Barnes & Hut, A hierarchical O(N log N)
// force-calculation algorithm, 1986), on hiroba/tasks.hpp over hiroba/gas.hpp: in each step every
// node gets all places and builds the tree; tasks on all nodes move blocks of bodies. Bodies in the
// middle cost more than others, so tasks move between nodes.
//
//     hiroba run --spmd -n 2 ./tasks_nbody [bodies] [steps]
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hiroba/tasks_gas.hpp"

using namespace hiroba;

namespace {

struct Body {
    double x, y, vx, vy;
};

/// A square: the mass in it and where its middle is; four squares in it, or one body.
struct Square {
    double x, y, half;
    double mass = 0, mass_x = 0, mass_y = 0;
    std::array<std::int32_t, 4> inner{-1, -1, -1, -1};
    std::int32_t body = -1;
};

class Tree {
public:
    explicit Tree(const std::vector<Body>& bodies) : bodies_(bodies) {
        double half = 1;
        for (const Body& each : bodies) half = std::max({half, std::abs(each.x), std::abs(each.y)});
        squares_.push_back({0, 0, half});
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(bodies.size()); ++i) add(0, i, 0);
    }
    /// Adds to (ax, ay) how body `i` is drawn by what is in `square`.
    void draw(std::int32_t square, std::int32_t i, double& ax, double& ay) const {
        const Square& of = squares_[static_cast<std::size_t>(square)];
        if (of.mass == 0 || of.body == i) return;
        const Body& body = bodies_[static_cast<std::size_t>(i)];
        const double dx = of.mass_x / of.mass - body.x, dy = of.mass_y / of.mass - body.y;
        const double distance2 = dx * dx + dy * dy + 1e-4;
        if (of.inner[0] >= 0 && 4 * of.half * of.half > 0.25 * distance2) {
            for (const std::int32_t each : of.inner) draw(each, i, ax, ay);
            return;
        }
        const double pull = of.mass / (distance2 * std::sqrt(distance2));
        ax += pull * dx;
        ay += pull * dy;
    }

private:
    void add(std::int32_t square, std::int32_t i, int depth) {
        const Body& body = bodies_[static_cast<std::size_t>(i)];
        Square& of = squares_[static_cast<std::size_t>(square)];
        const bool was_empty = of.mass == 0;
        of.mass += 1, of.mass_x += body.x, of.mass_y += body.y;
        if (was_empty) return void(of.body = i);
        if (depth > 40) return;  // at one place
        const std::int32_t other = of.body;
        if (of.inner[0] < 0) split(square);
        if (other >= 0) {
            squares_[static_cast<std::size_t>(square)].body = -1;
            add(inner(square, other), other, depth + 1);
        }
        add(inner(square, i), i, depth + 1);
    }
    void split(std::int32_t square) {
        const double half = squares_[static_cast<std::size_t>(square)].half / 2;
        for (std::size_t k = 0; k < 4; ++k) {
            const Square& of = squares_[static_cast<std::size_t>(square)];
            const Square made{of.x + (k % 2 != 0 ? half : -half),
                              of.y + (k / 2 != 0 ? half : -half), half};
            squares_[static_cast<std::size_t>(square)].inner[k] =
                static_cast<std::int32_t>(squares_.size());
            squares_.push_back(made);
        }
    }
    std::int32_t inner(std::int32_t square, std::int32_t i) const {
        const Square& of = squares_[static_cast<std::size_t>(square)];
        const Body& body = bodies_[static_cast<std::size_t>(i)];
        return of.inner[(body.x > of.x ? 1u : 0u) + (body.y > of.y ? 2u : 0u)];
    }

    const std::vector<Body>& bodies_;
    std::vector<Square> squares_;
};

Body moved(const std::vector<Body>& bodies, const Tree& tree, std::int32_t i) {
    constexpr double step = 1e-3;
    Body body = bodies[static_cast<std::size_t>(i)];
    double ax = 0, ay = 0;
    tree.draw(0, i, ax, ay);
    body.vx += step * ax, body.vy += step * ay;
    body.x += step * body.vx, body.y += step * body.vy;
    return body;
}

std::vector<Body> first_bodies(std::int32_t count) {
    std::vector<Body> made;
    std::uint64_t state = 42;
    const auto draw = [&state] {
        state = state * 6364136223846793005 + 1442695040888963407;
        return static_cast<double>(state >> 11) / 9007199254740992.0;
    };
    for (std::int32_t i = 0; i < count; ++i) {
        // More in the middle.
        const double radius = draw() * draw(), angle = 6.283185307179586 * draw();
        made.push_back({radius * std::cos(angle), radius * std::sin(angle), 0, 0});
    }
    return made;
}

// What tasks find on the node that they run on.
gas::space* space = nullptr;
std::vector<Body> bodies;
const Tree* tree = nullptr;

}  // namespace

int main(int words, char** word) {
    const std::int32_t count = words > 1 ? std::atoi(word[1]) : 2000;
    const int steps = words > 2 ? std::atoi(word[2]) : 3;
    std::string why;
    const auto network = net::Network::open(&why);
    const auto scheduler = network ? tasks::Scheduler::open(network.get(), {}, &why) : nullptr;
    if (!scheduler || !network->connect(&why)) return std::fprintf(stderr, "%s\n", why.c_str()), 78;
    const auto opened = gas::space::open(&why);
    if (!opened) return std::fprintf(stderr, "%s\n", why.c_str()), 78;
    space = opened.get();
    const auto shared = space->allocate_together<Body>(static_cast<std::uint64_t>(count),
                                                       gas::Distribution::block());

    bodies = first_bodies(count);
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) {
        const Tree of_this_step(bodies);
        tree = &of_this_step;
        space->barrier();
        scheduler->run([=] {
            tasks::parallel_for(tasks::anywhere, 0, count, 64, [=](int first, int last) {
                std::vector<Body> made;
                for (int i = first; i < last; ++i) made.push_back(moved(bodies, *tree, i));
                if (!tasks::put(*space, shared + first, gas::ConstElements<Body>(made)))
                    std::abort();
            });
        });
        if (!space->get(shared, gas::Elements<Body>(bodies))) std::abort();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

    // Alone, with the same trees: the same bits, whichever node moved a body.
    std::vector<Body> alone = first_bodies(count);
    for (int step = 0; step < steps; ++step) {
        const Tree of_this_step(alone);
        std::vector<Body> next;
        for (std::int32_t i = 0; i < count; ++i) next.push_back(moved(alone, of_this_step, i));
        alone = next;
    }
    bool is_right = true;
    for (std::size_t i = 0; i < alone.size(); ++i)
        is_right = is_right && alone[i].x == bodies[i].x && alone[i].vy == bodies[i].vy;
    space->barrier();
    if (space->rank() == 0)
        std::printf("%d bodies, %d steps on %u nodes over %s: %.3f s: %s\n", count, steps,
                    network->nodes(), network->provider(), took.count(),
                    is_right ? "VERIFICATION SUCCESSFUL" : "VERIFICATION FAILED");
    return is_right ? 0 : 1;
}
