// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ half of the slow path. Called from assembly with aligned stack and saved vectors.
// Invariant: an operand that crosses a block would be two critical sections: it stops the job.
#include "omp/atomic/slow_path.hpp"

#include <cpuid.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "omp/atomic/wait_loops.hpp"
#include "omp/thread_part.hpp"

namespace hiroba::omp {

/// The registers that slow_path_entry.S has pushed; above them those that the trampoline has pushed
/// (trampoline.cpp).
struct HookFrame {
    std::uint64_t r15, r14, r13, r12, rbx, r11, r10, r9, r8, rdx, rcx;
    std::uint64_t hook_flags, rbp, return_address, rsi;

    struct Above {
        std::uint64_t address, flags, rdi, rax;
        std::byte red_zone[128];
    };
    Above& above() noexcept {
        return *reinterpret_cast<Above*>(reinterpret_cast<std::byte*>(this + 1) +
                                         vector_room_bytes());
    }
    std::uintptr_t program_stack() noexcept {
        return reinterpret_cast<std::uintptr_t>(&above() + 1);
    }
    /// In the processor's numbering.
    std::uint64_t general(unsigned number) noexcept {
        const std::uint64_t all[16] = {
            above().rax, rcx, rdx, rbx, program_stack(), rbp, rsi, above().rdi, r8, r9, r10, r11,
            r12,         r13, r14, r15};
        return all[number];
    }
};

}  // namespace hiroba::omp

// extern "C" although this is no ABI: the assembly beside this file calls and reads these by name.
extern "C" {
[[gnu::visibility("hidden")]] std::uint64_t hiroba_vector_bytes = 512;
[[gnu::visibility("hidden")]] std::uint32_t hiroba_vector_mask = 0;
[[gnu::visibility("hidden")]] bool hiroba_vector_compact = false;  ///< xsavec exists
[[gnu::visibility("hidden")]] void hiroba_atomic_before();
[[gnu::visibility("hidden")]] void hiroba_atomic_after();
[[gnu::visibility("hidden")]] void hiroba_atomic_before_xmm();
[[gnu::visibility("hidden")]] void hiroba_atomic_after_xmm();
[[gnu::visibility("hidden")]] hiroba::omp::Entered hiroba_atomic_enter(
    void* address, hiroba::omp::SiteRecord* site, hiroba::omp::HookFrame* frame,
    const std::byte* vectors) noexcept;
[[gnu::visibility("hidden")]] void hiroba_atomic_leave(void* address,
                                                       hiroba::omp::SiteRecord* site) noexcept;
}

namespace hiroba::omp {
namespace {

std::atomic<RewrittenObject*> newest_object{nullptr};

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

std::uint64_t term_value(const LastOperation& last, HookFrame& frame, const std::byte* vectors) {
    std::uint64_t value = 0;
    const auto load = [&](const void* from) { std::memcpy(&value, from, last.arithmetic.bytes); };
    switch (last.place) {
        case TermPlace::general_register: value = frame.general(last.term_register); break;
        case TermPlace::vector_register:
            if (vectors != nullptr) load(vectors + std::size_t{16} * last.term_register);
            break;
        case TermPlace::constant: value = static_cast<std::uint64_t>(last.value); break;
        case TermPlace::stack:
            load(reinterpret_cast<const void*>(frame.program_stack() +
                                               static_cast<std::uint64_t>(last.value)));
            break;
        case TermPlace::memory: load(reinterpret_cast<const void*>(last.value)); break;
    }
    return last.negated ? -value : value;
}

/// A reduction's last instruction in a region whose join takes the term along.
/// Whether it is this atomic that was announced: the next one behind the call, of the same term.
bool is_announced(const SiteRecord& site, std::uint64_t value, const AnnouncedTerm& announced) {
    constexpr std::uintptr_t behind_max = 512;  // the other way to add lies between
    return announced.code != 0 && site.address - announced.code < behind_max &&
           std::memcmp(&value, announced.term, site.last.arithmetic.bytes) == 0;
}

bool passes_term_on(std::uintptr_t at, const SiteRecord& site, HookFrame* registers,
                    const std::byte* vectors, const AnnouncedTerm& announced) noexcept {
    const LastOperation& last = site.last;
    const AtomicHooks& hooks = site.object->hooks;
    if (!last || hooks.leaves_to_join == nullptr || hooks.sequential || last.displacement < 0)
        return false;
    HookFrame& frame = *registers;
    const std::uint64_t data = frame.general(last.base_register);
    if (at != data + static_cast<std::uint64_t>(last.displacement) || !is_global(hooks, at))
        return false;
    const std::uint64_t way_back = last.has_frame ? frame.rbp : frame.program_stack();
    const void* return_address = nullptr;
    std::memcpy(&return_address,
                reinterpret_cast<const void*>(
                    way_back + static_cast<std::uint64_t>(std::int64_t{last.return_address_at})),
                sizeof return_address);
    const JoinTerm term{at, term_value(last, frame, vectors), last.arithmetic};
    if (!hooks.leaves_to_join(
            {term, data, return_address, is_announced(site, term.value, announced)}))
        return false;
    // lahf puts the zero flag there; restore_from_entry() takes it from there.
    constexpr std::uint64_t zero_flag = 1u << 14;
    if (last.by_exchange) frame.above().flags |= zero_flag;
    return true;
}

/// @param addresses  what a round of the loop has loaded from: two, or one and null
void tell_of_wait(const AtomicHooks& hooks, const void* addresses) noexcept {
    std::uintptr_t loaded[loop_loads_max];
    std::memcpy(loaded, addresses, sizeof loaded);
    for (const std::uintptr_t at : loaded)
        if (hooks.waits != nullptr && is_global(hooks, at))
            hooks.waits(hooks.context, reinterpret_cast<void*>(at));
}

bool enter(void* address, SiteRecord& site) noexcept {
    const AtomicHooks& hooks = site.object->hooks;
    if (site.kind == SiteKind::flush) {
        hooks.flush(hooks.context);
        return false;
    }
    if (site.kind == SiteKind::wait) {
        tell_of_wait(hooks, address);
        return false;
    }
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (crosses_block(at, site.operand_bytes, hooks.block_bytes)) {
        if (!is_global(hooks, at)) return false;
        if (hooks.enter_crossing == nullptr)
            die(exit_environment,
                "the atomic at %lx works on %u bytes at %lx, which cross a block of %lu bytes: "
                "align the variable",
                site.address, unsigned{site.operand_bytes}, at, hooks.block_bytes);
        hooks.enter_crossing(address);
        return true;
    }
    if (hooks.sequential && is_global(hooks, at)) hooks.flush(hooks.context);
    return hooks.enter(hooks.context, address, site.operand_bytes);
}

void leave(void* address, SiteRecord& site) noexcept {
    const AtomicHooks& hooks = site.object->hooks;
    if (crosses_block(reinterpret_cast<std::uintptr_t>(address), site.operand_bytes,
                      hooks.block_bytes))
        return hooks.leave_crossing(address);
    hooks.leave(hooks.context, address, site.operand_bytes);
    if (hooks.sequential) hooks.flush(hooks.context);
}

/// While one lives, the thread's context names the part of the stack that such a trampoline and
/// the frames below it lie over: their changes are no writes of the program's.
class FramesOnStack {
public:
    /// @param own  of the C++ function that the hook has called
    FramesOnStack(const SiteRecord& site, HookFrame* hook, const void* own) noexcept
        : known_(site.kind != SiteKind::atomic && hook != nullptr) {
        if (!known_) return;
        constexpr std::size_t below_frame = 512;  // of what is called until the stack is switched
        dsm::ignore_frames(reinterpret_cast<std::uintptr_t>(own) - below_frame,
                           reinterpret_cast<std::uintptr_t>(hook->above().red_zone));
    }
    FramesOnStack(const FramesOnStack&) = delete;
    FramesOnStack& operator=(const FramesOnStack&) = delete;
    ~FramesOnStack() {
        if (known_) dsm::ignore_frames(0, 0);
    }

private:
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

void keep_object(RewrittenObject& object) noexcept {
    object.next = newest_object.load(std::memory_order_relaxed);
    // Relaxed: nobody follows the list.
    while (!newest_object.compare_exchange_weak(object.next, &object, std::memory_order_relaxed)) {
    }
}

}  // namespace hiroba::omp

hiroba::omp::Entered hiroba_atomic_enter(void* address, hiroba::omp::SiteRecord* site,
                                         hiroba::omp::HookFrame* frame,
                                         const std::byte* vectors) noexcept {
    using hiroba::omp::Entered;
    Entered entered = Entered::no;
    hiroba::ThreadContext& context = hiroba::this_thread();
    const auto announced = std::exchange(hiroba::omp::thread_part(context).announced, {});
    // Set until leave: a handler of the program that ran now could wait for what this thread holds.
    context.in_runtime = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const hiroba::omp::FramesOnStack frames{*site, frame, __builtin_frame_address(0)};
    hiroba::omp::as_runtime([&] {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        const bool lacks_stores = hiroba::omp::thread_part(context).lacks_stores;
        const bool orders = site->kind != hiroba::omp::SiteKind::atomic ||
                            hiroba::omp::is_global(site->object->hooks, at);
        if (lacks_stores && orders) hiroba::omp::acquire_lost_singles();
        if (hiroba::omp::passes_term_on(at, *site, frame, vectors, announced))
            entered = Entered::elsewhere;
        else if (hiroba::omp::enter(address, *site))
            entered = Entered::yes;
    });
    if (entered != Entered::yes) context.in_runtime = false;
    return entered;
}

void hiroba_atomic_leave(void* address, hiroba::omp::SiteRecord* site) noexcept {
    hiroba::omp::as_runtime([&] { hiroba::omp::leave(address, *site); });
    hiroba::this_thread().in_runtime = false;
}
