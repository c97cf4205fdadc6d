// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ half of the slow path. Called from assembly with aligned stack and saved vectors.
// Invariant: an operand that crosses a block would be two critical sections: it stops the job.
#include "omp/atomic/slow_path.hpp"

#include <cpuid.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"

// extern "C" although this is no ABI: the assembly beside this file calls and reads these by name.
extern "C" {
[[gnu::visibility("hidden")]] std::uint64_t hiroba_vector_bytes = 512;
[[gnu::visibility("hidden")]] std::uint32_t hiroba_vector_mask = 0;
[[gnu::visibility("hidden")]] bool hiroba_vector_compact = false;  ///< xsavec exists
[[gnu::visibility("hidden")]] void hiroba_atomic_before();
[[gnu::visibility("hidden")]] void hiroba_atomic_after();
[[gnu::visibility("hidden")]] void hiroba_atomic_before_xmm();
[[gnu::visibility("hidden")]] void hiroba_atomic_after_xmm();
[[gnu::visibility("hidden")]] bool hiroba_atomic_enter(void* address, hiroba::omp::SiteRecord* site,
                                                       const std::byte* room) noexcept;
[[gnu::visibility("hidden")]] void hiroba_atomic_leave(void* address,
                                                       hiroba::omp::SiteRecord* site) noexcept;
}

namespace hiroba::omp {
namespace {

std::atomic<ObjectRecord*> newest_object{nullptr};

/// x87, SSE, AVX, AVX-512 masks and both halves of ZMM; not AMX, which hooks never touch.
constexpr std::uint32_t vector_components = 0xe7;

void choose_vector_save() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return;  // fxsave does

    unsigned enabled_low = 0, enabled_high = 0;
    asm volatile("xgetbv" : "=a"(enabled_low), "=d"(enabled_high) : "c"(0));
    std::uint32_t bytes = 512 + 64;
    for (unsigned component = 2; component < 8; ++component) {
        if (!(enabled_low & vector_components & (1u << component))) continue;
        if (__get_cpuid_count(0xd, component, &a, &b, &c, &d)) bytes = std::max(bytes, a + b);
    }
    hiroba_vector_bytes = bytes;
    hiroba_vector_mask = enabled_low & vector_components;
    // The compacted form is never longer: the same components without gaps.
    hiroba_vector_compact = __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a & bit_XSAVEC);
}

bool crosses_block(std::uintptr_t address, std::size_t bytes, std::size_t block_bytes) {
    return address / block_bytes != (address + bytes - 1) / block_bytes;
}

bool is_global(const AtomicHooks& hooks, std::uintptr_t address) {
    return std::any_of(hooks.global.begin(), hooks.global.end(),
                       [&](const dsm::AddressRange& range) { return range.contains(address); });
}

bool enter(void* address, SiteRecord& site) noexcept {
    ObjectRecord& object = *site.object;
    const AtomicHooks& hooks = object.hooks;
    if (site.kind == SiteKind::flush) {
        object.flushes.fetch_add(1, std::memory_order_relaxed);
        hooks.flush(hooks.context);
        return false;
    }
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (crosses_block(at, site.operand_bytes, hooks.block_bytes)) {
        if (!is_global(hooks, at)) return false;
        fatal(
            "the atomic at %lx works on %u bytes at %lx, which cross a block of %lu bytes: "
            "align the variable",
            site.address, unsigned{site.operand_bytes}, at, hooks.block_bytes);
    }
    if (hooks.sequential && is_global(hooks, at)) hooks.flush(hooks.context);
    if (!hooks.enter(hooks.context, address, site.operand_bytes)) return false;
    object.atomics.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void leave(void* address, SiteRecord& site) noexcept {
    const AtomicHooks& hooks = site.object->hooks;
    hooks.leave(hooks.context, address, site.operand_bytes);
    if (hooks.sequential) hooks.flush(hooks.context);
}

/// While one lives, the thread's context says what a flush's trampoline and the frames below it lie
/// over: that they change is no write of the program's.
class FramesOnStack {
public:
    /// @param room  of the trampoline: above it are the four words that the trampoline pushed
    FramesOnStack(const SiteRecord& site, const std::byte* room, const void* frame) noexcept
        : context_(this_thread()), known_(site.kind == SiteKind::flush && room != nullptr) {
        if (!known_) return;
        constexpr std::size_t pushed_bytes = 4 * sizeof(std::uint64_t);
        constexpr std::size_t below_frame = 512;  // of what is called until the stack is switched
        context_.frames_begin = reinterpret_cast<std::uintptr_t>(frame) - below_frame;
        context_.frames_end = reinterpret_cast<std::uintptr_t>(room) +
                              static_cast<std::size_t>(vector_room_bytes()) + pushed_bytes;
    }
    FramesOnStack(const FramesOnStack&) = delete;
    FramesOnStack& operator=(const FramesOnStack&) = delete;
    ~FramesOnStack() {
        if (known_) context_.frames_begin = context_.frames_end = 0;
    }

private:
    ThreadContext& context_;
    bool known_;
};

/// Runs `body` on the runtime stack and keeps the program's errno.
template <class Body>
void as_runtime(Body&& body) noexcept {
    const int program_errno = errno;
    on_runtime_stack(body);
    errno = program_errno;
}

}  // namespace

std::int32_t vector_room_bytes() noexcept {
    [[maybe_unused]] static const bool chosen = (choose_vector_save(), true);
    constexpr std::uint64_t alignment = 64;  // of the save area within the room
    return static_cast<std::int32_t>(round_up(hiroba_vector_bytes, alignment) + alignment);
}

SlowPathEntries slow_path_entries(VectorUse vectors) noexcept {
    vector_room_bytes();  // chooses
    if (vectors == VectorUse::xmm) {
        return {reinterpret_cast<std::uintptr_t>(&hiroba_atomic_before_xmm),
                reinterpret_cast<std::uintptr_t>(&hiroba_atomic_after_xmm)};
    }
    return {reinterpret_cast<std::uintptr_t>(&hiroba_atomic_before),
            reinterpret_cast<std::uintptr_t>(&hiroba_atomic_after)};
}

void count_object(ObjectRecord& object) noexcept {
    object.next = newest_object.load(std::memory_order_relaxed);
    // Pairs with the acquire load in atomic_counts(); a failed exchange reloads `next`.
    while (!newest_object.compare_exchange_weak(object.next, &object, std::memory_order_release,
                                                std::memory_order_relaxed)) {
    }
}

AtomicCounts atomic_counts() noexcept {
    AtomicCounts counts;
    // Pairs with the release exchange in count_object().
    for (const ObjectRecord* object = newest_object.load(std::memory_order_acquire);
         object != nullptr; object = object->next) {
        counts.atomics += object->atomics.load(std::memory_order_relaxed);
        counts.flushes += object->flushes.load(std::memory_order_relaxed);
    }
    return counts;
}

}  // namespace hiroba::omp

bool hiroba_atomic_enter(void* address, hiroba::omp::SiteRecord* site,
                         const std::byte* room) noexcept {
    bool entered = false;
    const hiroba::omp::FramesOnStack frames{*site, room, __builtin_frame_address(0)};
    // Until leave: a handler of the program that ran now could wait for what this thread holds.
    hiroba::this_thread().in_runtime = true;
    hiroba::omp::as_runtime([&] { entered = hiroba::omp::enter(address, *site); });
    if (!entered) hiroba::this_thread().in_runtime = false;
    return entered;
}

void hiroba_atomic_leave(void* address, hiroba::omp::SiteRecord* site) noexcept {
    hiroba::omp::as_runtime([&] { hiroba::omp::leave(address, *site); });
    hiroba::this_thread().in_runtime = false;
}
