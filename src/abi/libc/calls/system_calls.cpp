// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/system_calls.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "abi/libc/calls/direct_memory.hpp"
#include "abi/libc/calls/handovers.hpp"
#include "abi/libc/calls/interruptions.hpp"
#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/short_counts.hpp"
#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/directories.hpp"
#include "abi/libc/files/packed_calls.hpp"
#include "abi/libc/files/record_locks.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/files/remote_waits.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "abi/libc/files/whole_output.hpp"
#include "abi/libc/memory/memory_calls.hpp"
#include "abi/libc/process/attributes.hpp"
#include "abi/libc/process/child_waits.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/resource_limits.hpp"
#include "abi/libc/process/signal_waits.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/own_descriptors.hpp"
#include "base/own_libraries.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi {
namespace {

/// The longest vector the kernel takes; longer ones are the kernel's to refuse.
constexpr std::size_t vector_max = 1024;

/// The low 32 bits: counts and lengths of calls that take an int.
std::size_t count_of(long word) noexcept { return word > 0 ? static_cast<std::size_t>(word) : 0; }

/// Memory that other processes write, each node's kernel in its own place: no other node sees it.
bool refuses_segment(long number) noexcept {
    if (number != SYS_shmat) return false;
    say("shmat refused: a segment of System V shared memory is known to one node only; use malloc "
        "between the threads of the program, or run on one node (-n 1)");
    return true;
}

/// Kernel interfaces that use buffers after the call has returned: nothing could pin them as long.
bool is_refused(long number) noexcept {
    if (refuses_segment(number)) return true;
    const bool submits = number == SYS_io_setup || number == SYS_io_uring_setup;
    if (!submits) return false;
    static constinit std::atomic<bool> said{false};
    if (!said.exchange(true, std::memory_order_relaxed)) {
        say("%s refused: asynchronous input and output into memory shared by nodes is not "
            "possible; use read and write, or run on one node (-n 1)",
            number == SYS_io_setup ? "io_setup" : "io_uring_setup");
    }
    return true;
}

bool makes_descriptor(const SystemCall& row, const CallArguments& arguments) noexcept {
    const bool copies = row.number == SYS_fcntl &&
                        (arguments.word[1] == F_DUPFD || arguments.word[1] == F_DUPFD_CLOEXEC);
    return row.opens || copies;
}

/// The calls whose descriptors are where an argument points.
void number_both_ends(long number, const CallArguments& arguments) noexcept {
    const bool pipes = number == SYS_pipe || number == SYS_pipe2;
    if (!pipes && number != SYS_socketpair) return;
    auto* const ends = pointer<int>(arguments.word[pipes ? 0 : 3]);
    for (int i = 0; i < 2; ++i) ends[i] = static_cast<int>(number_new_descriptor(ends[i]));
}

}  // namespace

PinnedBuffers::~PinnedBuffers() {
    for (std::size_t i = 0; i < count_; ++i) {
        world()->memory->unpin(pinned_[i].address, pinned_[i].bytes);
    }
}

void PinnedBuffers::add(const void* address, std::size_t bytes, bool write) noexcept {
    if (bytes == 0 || !is_global(address)) return;
    if (count_ == pinned_max) {
        // A batch of messages with more buffers than any one call can have: accessible now, and
        // what an acquire takes away meanwhile comes back as a shorter batch, which is allowed.
        world()->memory->make_accessible(address, bytes, write);
        return;
    }
    world()->memory->pin(address, bytes, write);
    pinned_[count_++] = {address, bytes, write};
}

bool PinnedBuffers::map_again() const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
        world()->memory->make_accessible(pinned_[i].address, pinned_[i].bytes, pinned_[i].write);
    }
    return count_ > 0;
}

void PinnedBuffers::add_text(const char* text) noexcept {
    // strlen faults in what is invalid.
    if (text != nullptr && is_global(text)) add(text, strlen(text) + 1, false);
}

void PinnedBuffers::add_texts(const char* const* texts) noexcept {
    if (texts == nullptr) return;
    std::size_t count = 0;
    for (; texts[count] != nullptr; ++count) add_text(texts[count]);
    add(texts, (count + 1) * sizeof *texts, false);
}

void PinnedBuffers::add_vector(const void* vector, std::size_t count, bool write) noexcept {
    if (vector == nullptr || count > vector_max) return;
    const auto* const entries = static_cast<const iovec*>(vector);
    add(entries, count * sizeof *entries, false);
    for (std::size_t i = 0; i < count; ++i) add(entries[i].iov_base, entries[i].iov_len, write);
}

void PinnedBuffers::add_message(const void* address, bool write) noexcept {
    if (address == nullptr) return;
    const auto& message = *static_cast<const msghdr*>(address);
    add(&message, sizeof message, write);
    add(message.msg_name, message.msg_namelen, write);
    add(message.msg_control, message.msg_controllen, write);
    add_vector(message.msg_iov, message.msg_iovlen, write);
}

void PinnedBuffers::add_messages(const void* address, std::size_t count, bool write) noexcept {
    if (address == nullptr || count > vector_max) return;
    const auto* const messages = static_cast<const mmsghdr*>(address);
    add(messages, count * sizeof *messages, true);  // msg_len is written either way
    for (std::size_t i = 0; i < count; ++i) add_message(&messages[i].msg_hdr, write);
}

void PinnedBuffers::add_address(const void* address, const void* length) noexcept {
    if (length == nullptr) return;
    const socklen_t bytes = *static_cast<const socklen_t*>(length);
    add(length, sizeof bytes, true);
    if (address != nullptr) add(address, bytes, true);
}

void PinnedBuffers::add_touch(const Touch& touch, const CallArguments& arguments) noexcept {
    const void* const at = pointer<void>(arguments.word[touch.argument]);
    const std::size_t count = touch.count == no_count ? 1 : count_of(arguments.word[touch.count]);
    switch (touch.use) {
        case Use::none: return;
        case Use::text: return add_text(static_cast<const char*>(at));
        case Use::texts: return add_texts(static_cast<const char* const*>(at));
        case Use::in: return add(at, touch.bytes * count, false);
        case Use::out: return add(at, touch.bytes * count, true);
        case Use::in_vector: return add_vector(at, count, false);
        case Use::out_vector: return add_vector(at, count, true);
        case Use::in_message: return add_message(at, false);
        case Use::out_message: return add_message(at, true);
        case Use::in_messages: return add_messages(at, count, false);
        case Use::out_messages: return add_messages(at, count, true);
        case Use::in_letter: return add(at, sizeof(long) + count, false);
        case Use::out_letter: return add(at, sizeof(long) + count, true);
        case Use::address: return add_address(at, pointer<void>(arguments.word[touch.count]));
        case Use::bits: return add(at, (count_of(arguments.word[0]) + 63) / 64 * 8, true);
    }
}

void PinnedBuffers::add(const SystemCall& row, const CallArguments& arguments) noexcept {
    for (const Touch& touch : row.touches) {
        if (touch.use == Use::none) return;
        add_touch(touch, arguments);
    }
}

namespace {

/// The kernel may drop the mapping of a pinned page, or hide it for an instant, and then refuses
/// the call with nothing done. What the program itself got wrong is refused again.
long call_with(const PinnedBuffers& buffers, long number, const CallArguments& arguments) noexcept {
    constexpr int attempts_max = 4;
    const long* const a = arguments.word;
    for (int attempt = 1;; ++attempt) {
        const long result = dsm::kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (result != -EFAULT || attempt == attempts_max || !buffers.map_again()) return result;
    }
}

/// To its end, unless a handler of the program has run.
long wait_with(const PinnedBuffers& buffers, long number, CallArguments arguments) noexcept {
    RestOfWait rest{number, arguments};
    for (;;) {
        const long result = call_with(buffers, number, arguments);
        if (!rest.goes_on(result, arguments)) return result;
    }
}

/// What waits for any signal goes on waiting where none of the program's has come: a signal that
/// the thread blocks is brought to it by another (thread_signals.hpp).
long wait_for_any_signal(long number, const CallArguments& arguments) noexcept {
    const std::uint64_t handlers_before = handlers_so_far();
    PinnedBuffers buffers;
    if (const SystemCall* const row = find_system_call(number)) buffers.add(*row, arguments);
    for (;;) {
        const long result = call_with(buffers, number, arguments);
        if (result != -EINTR || handlers_so_far() != handlers_before) return result;
    }
}

/// A read or write of /proc/self/mem, where the file stands, has met a page that is not there.
long call_on_memory(PinnedBuffers& buffers, long number, const CallArguments& arguments) noexcept {
    const long place = dsm::kernel_call(SYS_lseek, arguments.word[0], 0, SEEK_CUR);
    if (!add_memory_as_file(buffers, number, arguments, place)) return -EIO;
    return call_with(buffers, number, arguments);
}

bool is_ours(long fd) noexcept {
    const auto number = static_cast<int>(fd);
    return is_kept_descriptor(number) || is_own_descriptor(number);
}

/// Whether the program would take a descriptor of hiroba's away: to it there is none.
bool takes_ours(long number, const CallArguments& arguments) noexcept {
    switch (number) {
        case SYS_close: return is_ours(arguments.word[0]);
        case SYS_dup2:
        case SYS_dup3: return is_ours(arguments.word[1]);
        default: return false;
    }
}

/// close_range() around those of hiroba's.
long close_others(unsigned first, unsigned last, long flags) noexcept {
    constexpr unsigned ours_max = 1024;
    const RuntimeScope here;  // a handler of the program would wait for its own thread
    const std::scoped_lock guard{descriptors_in_motion};
    long result = first <= last ? 0 : -EINVAL;
    const auto close = [&](unsigned from, unsigned to) {
        if (from <= to && result == 0) result = dsm::kernel_call(__NR_close_range, from, to, flags);
    };
    unsigned begin = first;
    for (unsigned fd = first; fd <= last && fd < ours_max; ++fd) {
        if (!is_ours(fd)) continue;
        if (fd > begin) close(begin, fd - 1);
        begin = fd + 1;
    }
    if (begin <= last) close(begin, last);
    return result;
}

/// What changes descriptors 0 to 2 otherwise than dup2() and dup3().
void note_standard(const SystemCall& row, const CallArguments& arguments, long result) noexcept {
    const NodeId self = world()->job.self;
    if (row.number == SYS_close && result == 0)
        standard_descriptor_changed(arguments.word[0], self);
    if (makes_descriptor(row, arguments)) standard_descriptor_changed(result, self);
}

/// The node that is to put one descriptor onto another; none: this one.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] std::optional<NodeId> duplicating_node(long from, long onto) noexcept {
    const auto owner = foreign_owner(static_cast<int>(from));
    if (is_standard(onto) || !is_node_process() || !system_calls_are_examined()) return owner;
    const NodeId self = world()->job.self, has = owner.value_or(self);
    const auto named = node_of_number(static_cast<int>(onto));
    if (!named || *named == has || (has.value == 0 && self.value == 0)) return owner;
    die(exit_environment,
        "dup2 of descriptor %ld, which node %u has, onto %ld: all nodes would look for that on "
        "node %u. Use dup, do it outside of parallel regions, or run on one node (-n 1)",
        from, has.value, onto, named->value);
}

/// dup2() and dup3(): the node that has `from` puts it, and serves all from then on.
long duplicate_onto(long number, const CallArguments& arguments) noexcept {
    const long* const a = arguments.word;
    const auto owner = duplicating_node(a[0], a[1]);
    const ClosingFile closing{owner || a[0] == a[1] ? -1 : a[1]};
    const long result = owner ? world()->files->call(*owner, number, arguments, -1, {}, {})
                              : dsm::kernel_call(number, a[0], a[1], a[2]);
    if (result >= 0) standard_descriptor_changed(result, owner.value_or(world()->job.self));
    return result;
}

void note_closed_standard(unsigned first, unsigned last, long flags) noexcept {
    if ((flags & CLOSE_RANGE_CLOEXEC) != 0) return;
    for (unsigned fd = first; fd <= last && is_standard(fd); ++fd)
        standard_descriptor_changed(fd, world()->job.self);
}

long perform(long number, const CallArguments& asked) noexcept {
    const ThroughCache cached{number, asked};
    const CallArguments& arguments = cached.arguments();
    const long* const a = arguments.word;
    if (takes_ours(number, arguments)) return -EBADF;
    if (const auto done = perform_limit_call(number, a)) return *done;
    before_attribute_call(number, a[0], a[2]);
    if (number == __NR_close_range) {
        const auto first = static_cast<unsigned>(a[0]), last = static_cast<unsigned>(a[1]);
        const long result = close_others(first, last, a[2]);
        if (result == 0) note_closed_standard(first, last, a[2]);
        return result;
    }
    if (sets_action_of_program(number, a)) return perform_signal_action(a);
    if (number == SYS_rt_sigtimedwait && is_node_process()) return wait_for_signal(arguments);
    if ((number == SYS_wait4 || number == SYS_waitid) && is_node_process())
        return wait_for_child(number, arguments);
    if (number == SYS_pause || number == SYS_rt_sigsuspend)
        return wait_for_any_signal(number, arguments);
    if (const auto sent = perform_thread_signal(number, arguments)) return *sent;
    if (number == SYS_dup2 || number == SYS_dup3) return duplicate_onto(number, arguments);
    const SystemCall* const row = find_system_call(number);
    if (row == nullptr) {
        if (is_refused(number)) return -ENOSYS;
        if (is_memory_advice(number, a)) return 0;
        const long result = number == SYS_prctl
                                ? perform_prctl(a)
                                : dsm::kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (result == 0) after_attribute_call(number, a[0], a[1]);
        return result;
    }
    if (row->opens && row->touches[0].use == Use::text)
        refuse_soft_dirty(pointer<const char>(a[row->touches[0].argument]));
    if (const auto locked = lock_for_job(number, arguments)) return *locked;
    if (const auto owner = foreign_owner(*row, arguments)) {
        return perform_on_owner(*owner, number, arguments);
    }
    if (foreign_owner(second_descriptor(number, arguments))) return join_nodes(number, arguments);
    if (const auto waited = wait_elsewhere(number, arguments)) return *waited;
    refuse_to_pass(number, arguments);
    std::optional<ClosingFile> closing;
    if (number == SYS_close) closing.emplace(a[0]);
    long result;
    {
        PinnedBuffers buffers;
        buffers.add(*row, arguments);
        add_memory_as_file(buffers, number, arguments, -1);
        const bool writes = number == SYS_write || number == SYS_writev;
        const WritingTurn turn{writes ? a[0] : -1};
        result = wait_with(buffers, number, arguments);
        if (result == -EIO) result = call_on_memory(buffers, number, arguments);
        if (result > 0 && !buffers.is_empty())
            result = finish_transfer(buffers, number, arguments, result);
        if (result == 0) number_both_ends(number, arguments);
        number_received(number, arguments, result);
    }
    note_standard(*row, arguments, result);
    return makes_descriptor(*row, arguments) ? number_new_descriptor(result) : result;
}

}  // namespace

namespace {

/// With its own stack for the paths.
[[gnu::noinline]] long perform_with_whole_paths(long number, const CallArguments& given) noexcept {
    const WholePaths paths{number, given};
    return paths.failure() != 0 ? paths.failure() : perform(number, paths.arguments());
}

/// Where nodes tell each other of flushes by messages, the kernel is faster: the thread it wakes
/// may not have been told. A lock is asked for, and brings what its last holder knew.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void order_by_lock() noexcept {
    static const bool told_at_once =
        std::string_view{world()->endpoint->provider().limits().name} == "shm";
    if (told_at_once) return;
    const RuntimeScope here;
    world()->locks->lock(omp::kernel_order_key);
    world()->locks->unlock(omp::kernel_order_key);
}

void hand_over(long number) noexcept {
    world()->memory->flush();
    if (is_ordered_by_kernel(number)) order_by_lock();
}

}  // namespace

long perform_system_call(long number, const CallArguments& given) noexcept {
    CallArguments arguments = given;
    name_for_kernel(number, arguments.word);
    if (begins_elsewhere(number, arguments)) return perform_with_whole_paths(number, arguments);
    const Handover handover = handover_by(number, arguments);
    if (handover == Handover::tells || handover == Handover::both) hand_over(number);
    const long result = perform(number, arguments);
    const bool is_told = handover == Handover::is_told || handover == Handover::both;
    if (is_told && result >= 0) hand_over(number);
    take_waiting_letters();
    if (number == SYS_getpid) return process_for_program();
    return number == SYS_gettid ? number_for_program(static_cast<pid_t>(result)) : result;
}

}  // namespace hiroba::abi
