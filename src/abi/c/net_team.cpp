// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the communication layer: teams and their collectives.
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <type_traits>

#include "abi/c/last_error.hpp"
#include "abi/c/net.hpp"
#include "hiroba/net_teams.hpp"

struct hiroba_team {
    std::unique_ptr<hiroba::net::Team> team;
};

namespace {

namespace net = hiroba::net;
using hiroba::abi::failed;

std::span<std::byte> bytes_of(const void* memory, size_t bytes) noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(memory)), bytes};
}

int made(const char* call, std::unique_ptr<net::Team> team, hiroba_team** to) {
    *to = team == nullptr ? nullptr : new (std::nothrow) hiroba_team{std::move(team)};
    if (*to != nullptr || team == nullptr) return HIROBA_OK;
    return failed(HIROBA_NO_MEMORY, std::string(call) + "(): no memory");
}

/// No root beyond the last member: that would end the process.
int wrong_root(const char* call, const hiroba_team* team, uint32_t root) {
    if (root < team->team->size()) return HIROBA_OK;
    return failed(HIROBA_REFUSED, std::string(call) + "(): member " + std::to_string(root) +
                                      " of a team of " + std::to_string(team->team->size()));
}

/// What combines; it has no state, so that started reductions may borrow it.
template <class T>
struct Add {
    // Integers wrap around.
    T operator()(T a, T b) const noexcept {
        if constexpr (std::is_integral_v<T>) {
            using Word = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<Word>(a) + static_cast<Word>(b));
        } else {
            return a + b;
        }
    }
};
template <class T>
struct Min {
    T operator()(T a, T b) const noexcept { return b < a || a != a ? b : a; }
};
template <class T>
struct Max {
    T operator()(T a, T b) const noexcept { return b > a || a != a ? b : a; }
};

struct Reduction {
    hiroba_team* of;
    bool to_all;
    uint32_t root;
    void* values;
    size_t count;
    hiroba_pending* pending;
};
template <class T, template <class> class How>
int reduce_by(const Reduction& what) {
    static How<T> combine;
    const std::span<T> values{static_cast<T*>(what.values), what.count};
    net::Team& team = *what.of->team;
    if (what.pending == nullptr) {
        if (what.to_all) {
            team.all_reduce(values, combine);
        } else {
            team.reduce(what.root, values, combine);
        }
    } else if (what.to_all) {
        team.start_all_reduce(values, combine, what.pending->pending);
    } else {
        team.start_reduce(what.root, values, combine, what.pending->pending);
    }
    return HIROBA_OK;
}
template <class T>
int reduce_type(const char* call, const Reduction& what, int operation) {
    switch (operation) {
        case HIROBA_ADD: return reduce_by<T, Add>(what);
        case HIROBA_MIN: return reduce_by<T, Min>(what);
        case HIROBA_MAX: return reduce_by<T, Max>(what);
        default:
            return failed(HIROBA_REFUSED, std::string(call) + "(): operation " +
                                              std::to_string(operation) +
                                              "; there are HIROBA_ADD, HIROBA_MIN, HIROBA_MAX");
    }
}
int reduce(const char* call, const Reduction& what, int type, int operation) {
    switch (type) {
        case HIROBA_INT32: return reduce_type<std::int32_t>(call, what, operation);
        case HIROBA_INT64: return reduce_type<std::int64_t>(call, what, operation);
        case HIROBA_FLOAT: return reduce_type<float>(call, what, operation);
        case HIROBA_DOUBLE: return reduce_type<double>(call, what, operation);
        default:
            return failed(HIROBA_REFUSED, std::string(call) + "(): type " + std::to_string(type) +
                                              "; there are HIROBA_INT32 to HIROBA_DOUBLE");
    }
}

}  // namespace

extern "C" {

int hiroba_net_team(hiroba_net* of, hiroba_team** team) {
    return made("hiroba_net_team", of->network->team(), team);
}
int hiroba_team_split(hiroba_team* of, uint32_t color, uint32_t key, hiroba_team** part) {
    return made("hiroba_team_split", of->team->split(color, key), part);
}
void hiroba_team_free(hiroba_team* team) { delete team; }
uint32_t hiroba_team_member(const hiroba_team* of) { return of->team->self(); }
uint32_t hiroba_team_members(const hiroba_team* of) { return of->team->size(); }
uint32_t hiroba_team_rank(const hiroba_team* of, uint32_t member) {
    return of->team->node(member).value;
}

int hiroba_team_barrier(hiroba_team* of, hiroba_pending* pending) {
    pending == nullptr ? of->team->barrier() : of->team->start_barrier(pending->pending);
    return HIROBA_OK;
}
int hiroba_team_broadcast(hiroba_team* of, uint32_t root, void* data, size_t bytes,
                          hiroba_pending* pending) {
    if (const int wrong = wrong_root("hiroba_team_broadcast", of, root)) return wrong;
    const auto all = bytes_of(data, bytes);
    pending == nullptr ? of->team->broadcast(root, all)
                       : of->team->start_broadcast(root, all, pending->pending);
    return HIROBA_OK;
}
int hiroba_team_gather(hiroba_team* of, uint32_t root, const void* mine, size_t bytes, void* all,
                       hiroba_pending* pending) {
    if (const int wrong = wrong_root("hiroba_team_gather", of, root)) return wrong;
    const auto from = bytes_of(mine, bytes), to = bytes_of(all, bytes * of->team->size());
    pending == nullptr ? of->team->gather(root, from, to)
                       : of->team->start_gather(root, from, to, pending->pending);
    return HIROBA_OK;
}
int hiroba_team_all_gather(hiroba_team* of, const void* mine, size_t bytes, void* all,
                           hiroba_pending* pending) {
    const auto from = bytes_of(mine, bytes), to = bytes_of(all, bytes * of->team->size());
    pending == nullptr ? of->team->all_gather(from, to)
                       : of->team->start_all_gather(from, to, pending->pending);
    return HIROBA_OK;
}
int hiroba_team_all_to_all(hiroba_team* of, const void* out, void* in, size_t bytes,
                           hiroba_pending* pending) {
    const size_t all = bytes * of->team->size();
    const auto from = bytes_of(out, all), to = bytes_of(in, all);
    pending == nullptr ? of->team->all_to_all(from, to, bytes)
                       : of->team->start_all_to_all(from, to, bytes, pending->pending);
    return HIROBA_OK;
}
int hiroba_team_reduce(hiroba_team* of, uint32_t root, void* values, size_t count, int type,
                       int operation, hiroba_pending* pending) {
    if (const int wrong = wrong_root("hiroba_team_reduce", of, root)) return wrong;
    return reduce("hiroba_team_reduce", {of, false, root, values, count, pending}, type, operation);
}
int hiroba_team_all_reduce(hiroba_team* of, void* values, size_t count, int type, int operation,
                           hiroba_pending* pending) {
    return reduce("hiroba_team_all_reduce", {of, true, 0, values, count, pending}, type, operation);
}

}  // extern "C"
