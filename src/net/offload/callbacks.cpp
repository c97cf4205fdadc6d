// SPDX-License-Identifier: BSD-3-Clause
// Role: runs callbacks. A request made in a callback may complete before it returns; its callback
// waits until the running one is over, in a short line on the stack of whoever runs the first.
// Invariant: the line is reached through the thread's context, because thread-local data of a
// program's threads lies in global memory.
#include <array>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "net/offload/engine.hpp"
#include "net/thread_part.hpp"

namespace hiroba::net::offload {
namespace {

/// Nothing here initializes itself: most lines stay empty.
struct Ended {
    void (*function)(void* data, Outcome outcome) noexcept;
    void* data;
    Outcome outcome;
};

struct Line {
    static constexpr std::uint32_t length_max = 32;
    std::uint32_t first;
    std::uint32_t count;
    Ended ended[length_max];
};

Line* line_of(ThreadContext& thread) { return static_cast<Line*>(thread_part(thread).callbacks); }

}  // namespace

bool may_run_callback(ThreadContext& thread) noexcept {
    const Line* line = line_of(thread);
    return line == nullptr || line->count < Line::length_max;
}

void run_callback(ThreadContext& thread, const Completion& callback, Outcome outcome) noexcept {
    if (callback.function == nullptr) return;
    if (Line* line = line_of(thread)) {
        HIROBA_INVARIANT(line->count < Line::length_max, "%u callbacks wait for one to end",
                         line->count);
        line->ended[(line->first + line->count++) % Line::length_max] = {callback.function,
                                                                         callback.data, outcome};
        return;
    }
    Line line;
    line.first = line.count = 0;
    thread_part(thread).callbacks = &line;
    callback.function(callback.data, outcome);
    while (line.count != 0) {
        const Ended next = line.ended[line.first];
        line.first = (line.first + 1) % Line::length_max;
        --line.count;
        next.function(next.data, next.outcome);
    }
    thread_part(thread).callbacks = nullptr;
}

}  // namespace hiroba::net::offload
