// SPDX-License-Identifier: BSD-3-Clause
// Role: the C interface of ACP: converts arguments, results and errors; all else is acp::Node's.
// Invariant: the process has one node at a time; without one every function but acp_init fails.
#include <acp.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "abi/acp/process.hpp"
#include "acp/node.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/joined_job.hpp"

namespace {

using hiroba::Error;
using hiroba::ErrorKind;
using hiroba::Result;
using hiroba::acp::Access;
using hiroba::acp::Life;
using hiroba::acp::Node;
using hiroba::net::AtomicOp;

constexpr int exit_aborted = 1;

/// The parts that outlive acp_finalize: the job, this process's rank in it, the channel to the
/// launcher.
struct Process {
    hiroba::net::JobInfo job;
    std::unique_ptr<hiroba::net::ControlChannel> control;
    Life next_life;
};
Process& process() {
    static Process it;
    return it;
}
Node* node = nullptr;

}  // namespace

namespace hiroba::abi_acp {

acp::Node* current_node() noexcept { return node; }

int errno_of(const Error& error) noexcept {
    switch (error.kind) {
        case ErrorKind::usage:
        case ErrorKind::refused: return EINVAL;
        case ErrorKind::peer_lost: return ECONNRESET;
        case ErrorKind::environment:
        case ErrorKind::internal: break;
    }
    return EIO;
}

bool is_ready(const char* function) {
    if (node != nullptr) [[likely]]
        return true;
    say("%s: this process is not in a job: call acp_init first", function);
    errno = EPERM;
    return false;
}

}  // namespace hiroba::abi_acp

namespace {

using hiroba::abi_acp::fail;
using hiroba::abi_acp::is_ready;

/// `call` on the node, or `failure`.
template <class Value, class Call>
Value answer(const char* function, Value failure, Call&& call) {
    if (!is_ready(function)) [[unlikely]]
        return failure;
    const auto result = call(*node);
    if (!result) [[unlikely]]
        return fail(function, result.error(), failure);
    if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Result<void>>) {
        return Value{0};
    } else {
        return static_cast<Value>(*result);
    }
}

/// Others would wait for this rank forever.
void leave_behind(int status, void*) {
    if (node == nullptr || status != 0 || node->ranks() == 1) return;
    hiroba::die(exit_aborted, "rank %u ended without acp_finalize: the job ends", node->rank());
}

Result<void> join_job() {
    Process& mine = process();
    if (mine.control == nullptr) {
        if (auto valid = hiroba::check_settings(); !valid) return valid;
        auto job = hiroba::net::join_job_info();
        if (!job) return job.error();
        mine.job = *job;
        // Programs that this one executes must not take themselves for ranks.
        hiroba::net::restore_user_environment(environ);
        char host[HOST_NAME_MAX + 1] = {};
        ::gethostname(host, sizeof host - 1);
        hiroba::set_identity(mine.job.self.value, host);
        mine.control = std::make_unique<hiroba::net::ControlChannel>(mine.job);
        ::on_exit(&leave_behind, nullptr);
    }
    auto opened = Node::open(mine.job, *mine.control, mine.next_life);
    if (!opened) return opened.error();
    node = opened->release();
    return {};
}

/// Ends the node's life if `left` says what comes after it.
Result<void> end_life(Result<Life> left) {
    if (!left) return left.error();
    process().next_life = std::move(*left);
    delete node;
    node = nullptr;
    return {};
}

acp_handle_t issue(const char* function, const Access& access, acp_handle_t order) {
    constexpr acp_handle_t failure = ACP_HANDLE_NULL;
    if (!is_ready(function)) [[unlikely]]
        return failure;
    const acp_handle_t handle = node->try_access(access, order);
    if (handle != failure) [[likely]]
        return handle;
    return fail(function, node->why_refused(access, order), failure);
}

acp_handle_t atomic(const char* function, AtomicOp op, std::uint32_t width, acp_ga_t dst,
                    acp_ga_t src, std::uint64_t operand, std::uint64_t expected,
                    acp_handle_t order) {
    return issue(function, {true, op, width, dst, src, width, operand, expected}, order);
}

}  // namespace

HIROBA_ACP_PUBLIC int acp_init(int*, char***) {
    if (node != nullptr) {
        hiroba::say("acp_init: this process is in a job already: call acp_finalize first");
        errno = EINVAL;
        return -1;
    }
    const auto joined = join_job();
    return joined ? 0 : fail("acp_init", joined.error(), -1);
}

HIROBA_ACP_PUBLIC int acp_finalize() {
    return answer("acp_finalize", -1, [](Node& it) {
        auto ended = end_life(it.leave());
        if (ended) process().control->report_leaving();
        return ended;
    });
}

HIROBA_ACP_PUBLIC int acp_reset(int rank) {
    return answer("acp_reset", -1, [rank](Node& it) {
        auto ended = end_life(it.leave_for_reset(rank));
        return ended ? join_job() : ended;
    });
}

HIROBA_ACP_PUBLIC void acp_abort(const char* text) {
    const int why = errno;
    // Before acp_init the rank is not known; the line names the process's place all the same.
    const std::string rank = node != nullptr ? "rank " + std::to_string(node->rank()) : "a rank";
    const char* const said = text != nullptr ? text : "(no text)";
    if (why == 0) hiroba::die(exit_aborted, "%s aborts: %s", rank.c_str(), said);
    hiroba::die(exit_aborted, "%s aborts: %s (%s)", rank.c_str(), said, ::strerror(why));
}

HIROBA_ACP_PUBLIC int acp_sync() {
    return answer("acp_sync", -1, [](Node& it) {
        it.sync();
        return Result<void>{};
    });
}

HIROBA_ACP_PUBLIC int acp_rank() {
    return is_ready("acp_rank") ? static_cast<int>(node->rank()) : -1;
}

HIROBA_ACP_PUBLIC int acp_procs() {
    return is_ready("acp_procs") ? static_cast<int>(node->ranks()) : -1;
}

HIROBA_ACP_PUBLIC int acp_colors() {
    return is_ready("acp_colors") ? static_cast<int>(node->colors()) : -1;
}

HIROBA_ACP_PUBLIC acp_ga_t acp_query_starter_ga(int rank) {
    return answer("acp_query_starter_ga", acp_ga_t{ACP_GA_NULL},
                  [rank](Node& it) { return it.starter_address(rank); });
}

HIROBA_ACP_PUBLIC acp_atkey_t acp_register_memory(void* addr, size_t size, int color) {
    return answer("acp_register_memory", acp_atkey_t{ACP_ATKEY_NULL},
                  [=](Node& it) { return it.register_memory(addr, size, color); });
}

HIROBA_ACP_PUBLIC int acp_unregister_memory(acp_atkey_t atkey) {
    return answer("acp_unregister_memory", -1,
                  [atkey](Node& it) { return it.unregister_memory(atkey); });
}

HIROBA_ACP_PUBLIC acp_ga_t acp_query_ga(acp_atkey_t atkey, void* addr) {
    return answer("acp_query_ga", acp_ga_t{ACP_GA_NULL},
                  [=](Node& it) { return it.address_of(atkey, addr); });
}

HIROBA_ACP_PUBLIC void* acp_query_address(acp_ga_t ga) {
    return answer("acp_query_address", static_cast<void*>(nullptr),
                  [ga](Node& it) { return it.local(ga); });
}

HIROBA_ACP_PUBLIC int acp_query_rank(acp_ga_t ga) {
    return answer("acp_query_rank", -1, [ga](Node& it) { return it.rank_of_address(ga); });
}

HIROBA_ACP_PUBLIC int acp_query_color(acp_ga_t ga) {
    return answer("acp_query_color", -1, [ga](Node& it) { return it.color_of_address(ga); });
}

HIROBA_ACP_PUBLIC acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size,
                                        acp_handle_t order) {
    return issue("acp_copy", {false, {}, 0, dst, src, size, 0, 0}, order);
}

HIROBA_ACP_PUBLIC acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval,
                                        uint32_t newval, acp_handle_t order) {
    return atomic("acp_cas4", AtomicOp::compare_swap, 4, dst, src, newval, oldval, order);
}

HIROBA_ACP_PUBLIC acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval,
                                        uint64_t newval, acp_handle_t order) {
    return atomic("acp_cas8", AtomicOp::compare_swap, 8, dst, src, newval, oldval, order);
}

#define HIROBA_ACP_ATOMIC(name, bits, width, op)                                                 \
    HIROBA_ACP_PUBLIC acp_handle_t acp_##name##width(acp_ga_t dst, acp_ga_t src,                 \
                                                     uint##bits##_t value, acp_handle_t order) { \
        return atomic("acp_" #name #width, AtomicOp::op, width, dst, src, value, 0, order);      \
    }
HIROBA_ACP_ATOMIC(swap, 32, 4, swap)
HIROBA_ACP_ATOMIC(swap, 64, 8, swap)
HIROBA_ACP_ATOMIC(add, 32, 4, fetch_add)
HIROBA_ACP_ATOMIC(add, 64, 8, fetch_add)
HIROBA_ACP_ATOMIC(xor, 32, 4, fetch_xor)
HIROBA_ACP_ATOMIC(xor, 64, 8, fetch_xor)
HIROBA_ACP_ATOMIC(or, 32, 4, fetch_or)
HIROBA_ACP_ATOMIC(or, 64, 8, fetch_or)
HIROBA_ACP_ATOMIC(and, 32, 4, fetch_and)
HIROBA_ACP_ATOMIC(and, 64, 8, fetch_and)

HIROBA_ACP_PUBLIC void acp_complete(acp_handle_t handle) {
    if (is_ready("acp_complete")) node->complete(handle);
}

HIROBA_ACP_PUBLIC int acp_inquire(acp_handle_t handle) {
    return is_ready("acp_inquire") && node->is_incomplete(handle) ? 1 : 0;
}
