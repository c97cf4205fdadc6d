// SPDX-License-Identifier: BSD-3-Clause
// Role: the time zone that libc keeps: node 0's is the program's. libc reads it from TZ when it is
// asked to, so it is not always that of the environment.
// Invariant: where the program has `tzname` in its own memory, its names are global memory.
#pragma once

#include <cstddef>

namespace hiroba::abi {

/// TZ, as it was when libc read it last.
struct TimeZone {
    static constexpr std::size_t bytes_max = 1024;
    bool is_known = false;  ///< it has been read
    bool is_set = false;
    char text[bytes_max] = {};
};

/// For the scope of a call of libc's that reads TZ.
class ZoneUse {
public:
    enum class Reads { always, if_unknown };
    explicit ZoneUse(Reads reads) noexcept;
    ZoneUse(const ZoneUse&) = delete;
    ZoneUse& operator=(const ZoneUse&) = delete;
    ~ZoneUse();

private:
    Reads reads_;
    bool repairs_;
    char* names_[2] = {};
};

/// Another node: whether this node's is what node 0 had when the region began.
bool is_zone_of_node_0() noexcept;
/// This node's, for another to become so.
TimeZone time_zone() noexcept;
/// Makes libc of this node read `zone`, if that is not what it has read.
void become_time_zone(const TimeZone& zone) noexcept;

}  // namespace hiroba::abi
