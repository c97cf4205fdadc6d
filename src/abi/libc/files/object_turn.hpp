// SPDX-License-Identifier: BSD-3-Clause
// Role: orders what a node does for another one's call among what the callers' threads do.
#pragma once

#include <cstdint>

#include "abi/world.hpp"
#include "dsm/sync/sync_table.hpp"

namespace hiroba::abi {

/// While one lives, this thread alone works on what `object` leads to: the memory of fmemopen(),
/// the functions of fopencookie(), a Fortran statement. It sees what threads before it have done
/// there, and those after it see what it has done.
class ObjectTurn {
public:
    explicit ObjectTurn(const void* object, bool is_needed = true) noexcept
        : key_(reinterpret_cast<std::uintptr_t>(object) + 1), is_needed_(is_needed) {
        if (is_needed_) world()->sync->lock_mutex(key_, dsm::MutexType::normal, {});
    }
    ObjectTurn(const ObjectTurn&) = delete;
    ObjectTurn& operator=(const ObjectTurn&) = delete;
    ~ObjectTurn() {
        if (is_needed_) world()->sync->unlock_mutex(key_, dsm::MutexType::normal);
    }

private:
    dsm::SyncKey key_;
    bool is_needed_;
};

}  // namespace hiroba::abi
