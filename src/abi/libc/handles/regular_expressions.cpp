// SPDX-License-Identifier: BSD-3-Clause
// Role: regcomp() and its kin for the program. What libc makes of a pattern holds a lock and grows
// while it is used, so it stays private: the program's regex_t names a record in global memory, and
// each node works on a twin compiled from it at the first use there.
// Invariant: a twin belongs to one record for ever: records have ids that never come again, so one
// that lies where another was gets a twin of its own. Threads use no record that is being freed.
#include <regex.h>
#include <string.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(regcomp);
HIROBA_REAL(regexec);
HIROBA_REAL(regfree);

namespace hiroba::abi {
namespace {

/// In global memory; the pattern with its zero follows.
struct Record {
    std::uint64_t id;
    int flags;
    const char* pattern() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

/// In libc's heap of the node.
struct Twin {
    Twin* next;
    const Record* record;
    std::uint64_t id;
    regex_t compiled;
};

constexpr std::size_t rows = 256;
constinit Twin* twins[rows];  ///< by the record's address; under `latch`
constinit Latch latch;

Twin*& row_of(const Record* record) noexcept {
    return twins[reinterpret_cast<std::uintptr_t>(record) / 64 % rows];
}

std::uint64_t next_id() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    const World* const node = world();
    const std::uint64_t rank = node != nullptr ? node->job.self.value : 0;
    return rank << 48 | last.fetch_add(1, std::memory_order_relaxed);
}

void free_twin(Twin* twin) noexcept {
    if (twin == nullptr) return;
    real_regfree(&twin->compiled);
    __libc_free(twin);
}

/// Takes out of its row the twin of what lies, or lay, at `record`; none: nullptr.
Twin* take_twin(const Record* record) noexcept {
    const std::scoped_lock guard{latch};
    for (Twin** link = &row_of(record); *link != nullptr; link = &(*link)->next) {
        if ((*link)->record != record) continue;
        Twin* const found = *link;
        *link = found->next;
        return found;
    }
    return nullptr;
}

Twin* look_up(const Record* record, std::uint64_t id) noexcept {
    const std::scoped_lock guard{latch};
    for (Twin* each = row_of(record); each != nullptr; each = each->next)
        if (each->record == record && each->id == id) return each;
    return nullptr;
}

Twin* new_twin() noexcept {
    auto* const twin = static_cast<Twin*>(__libc_malloc(sizeof(Twin)));
    if (twin != nullptr) *twin = {};
    return twin;
}

/// Puts `twin` into its row, unless another thread was faster; what stays is returned.
Twin* keep(Twin* twin, const Record* record, std::uint64_t id) noexcept {
    twin->record = record;
    twin->id = id;
    Twin* faster = nullptr;
    {
        const std::scoped_lock guard{latch};
        Twin*& row = row_of(record);
        for (Twin* each = row; each != nullptr; each = each->next)
            if (each->record == record && each->id == id) faster = each;
        if (faster == nullptr) {
            twin->next = row;
            row = twin;
        }
    }
    if (faster == nullptr) return twin;
    free_twin(twin);
    return faster;
}

/// The record of an expression that was compiled for the program, else nullptr.
Record* record_of(const regex_t* expression) noexcept {
    void* const at = reinterpret_cast<void*>(expression->__REPB_PREFIX(buffer));
    return is_spread() && at != nullptr && is_program_memory(at) ? static_cast<Record*>(at)
                                                                 : nullptr;
}

Twin* twin_of(const Record* record) noexcept {
    const std::uint64_t id = record->id;  // outside the latch: it may be faulted in
    if (Twin* const found = look_up(record, id)) return found;
    free_twin(take_twin(record));  // of a record that lay here
    Twin* const twin = new_twin();
    if (twin == nullptr || real_regcomp(&twin->compiled, record->pattern(), record->flags) != 0) {
        die(exit_environment,
            "the regular expression \"%s\" of another node cannot be compiled here: its locale or "
            "memory is not this node's",
            record->pattern());
    }
    return keep(twin, record, id);
}

int compile(regex_t* expression, const char* pattern, int flags) noexcept {
    const std::size_t bytes = strlen(pattern) + 1;
    Twin* const twin = new_twin();
    auto* const record =
        static_cast<Record*>(allocate_for_program(sizeof(Record) + bytes, 64, false));
    int result = twin != nullptr && record != nullptr ? 0 : REG_ESPACE;
    if (result == 0) result = real_regcomp(&twin->compiled, pattern, flags);
    if (result != 0) {
        __libc_free(twin);
        release_block(record);
        return result;
    }
    *record = {next_id(), flags};
    memcpy(record + 1, pattern, bytes);
    const std::size_t groups = twin->compiled.re_nsub;
    free_twin(take_twin(record));
    keep(twin, record, record->id);
    *expression = {};
    expression->re_nsub = groups;
    expression->__REPB_PREFIX(buffer) =
        reinterpret_cast<decltype(expression->__REPB_PREFIX(buffer))>(record);
    return 0;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int regcomp(regex_t* expression, const char* pattern, int flags) {
    if (!is_spread() || !is_for_program(__builtin_return_address(0)))
        return real_regcomp(expression, pattern, flags);
    return compile(expression, pattern, flags);
}

int regexec(const regex_t* expression, const char* text, size_t count, regmatch_t matches[],
            int flags) {
    const Record* const record = record_of(expression);
    if (record == nullptr) return real_regexec(expression, text, count, matches, flags);
    return real_regexec(&twin_of(record)->compiled, text, count, matches, flags);
}

/// Twins of other nodes stay until another record lies there.
void regfree(regex_t* expression) {
    Record* const record = record_of(expression);
    if (record == nullptr) return real_regfree(expression);
    free_twin(take_twin(record));
    release_block(record);
    expression->__REPB_PREFIX(buffer) = nullptr;
}

}  // extern "C"
