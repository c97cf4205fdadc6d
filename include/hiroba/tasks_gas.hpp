// SPDX-License-Identifier: BSD-3-Clause
// Role: accesses to the relocatable space for tasks: while one is under way the worker runs others.
// Source: Endo & Taura, DSM with logical timestamps, section 3.5, for the space of MGAS-2.
//
// Link with hiroba::tasks and hiroba::gas. A hit on this node's memory, or on mapped memory, costs
// what it costs without tasks. C++20.
#pragma once

#include <cstdint>
#include <span>

#include "hiroba/gas.hpp"
#include "hiroba/tasks.hpp"

namespace hiroba::tasks {
namespace detail {

/// Waits for what was started with `pending`. A task that comes round without any having found a
/// reply in between waits in the space itself, whose wires are polled there, on behalf of all.
inline gas::Status wait_for(gas::space& space, gas::Pending& pending) {
    while (!pending.done()) {
        const std::uint64_t found = replies_found().load(std::memory_order_relaxed);
        if (!yield() && !pending.done() && replies_found().load(std::memory_order_relaxed) == found)
            break;
    }
    const gas::Status status = space.wait(pending);
    replies_found().fetch_add(1, std::memory_order_relaxed);
    return status;
}

}  // namespace detail

/// As space::get() and put(), of one element or of as many as `to` has. The task may go on in
/// another thread: no LocalView is held over it.
template <class T>
gas::Status get(gas::space& space, gas::ptr<T> from, gas::Elements<T> to) {
    gas::Pending pending;
    const gas::Status status = space.start_get(from, to, pending);
    if (pending.done()) return status ? space.wait(pending) : status;
    const gas::Status ended = detail::wait_for(space, pending);
    return status ? ended : status;
}
template <class T>
gas::Status get(gas::space& space, gas::ptr<T> from, std::remove_const_t<T>& to) {
    return get(space, from, gas::Elements<T>(&to, 1));
}
template <class T>
gas::Status put(gas::space& space, gas::ptr<T> to, gas::ConstElements<T> from) {
    gas::Pending pending;
    const gas::Status status = space.start_put(to, from, pending);
    if (pending.done()) return status ? space.wait(pending) : status;
    const gas::Status ended = detail::wait_for(space, pending);
    return status ? ended : status;
}
template <class T>
gas::Status put(gas::space& space, gas::ptr<T> to, const std::type_identity_t<T>& from) {
    return put(space, to, gas::ConstElements<T>(&from, 1));
}

}  // namespace hiroba::tasks
