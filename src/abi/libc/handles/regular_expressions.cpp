// SPDX-License-Identifier: BSD-3-Clause
// Role: regcomp() and its kin for the program. What libc makes of a pattern holds a lock and grows
// while it is used, so it stays private: the program's regex_t names a record in global memory, and
// each node works on a twin compiled from it at the first use there.
#include <regex.h>
#include <string.h>

#include <cstdint>

#include "abi/libc/handles/twins.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(regcomp);
HIROBA_REAL(regexec);
HIROBA_REAL(regfree);

namespace hiroba::abi {
namespace {

/// In global memory; the pattern with its zero follows.
struct Record {
    static constexpr std::uint64_t is_record = 0x7265'6769'7374'6572;
    std::uint64_t mark;  ///< is_record; what re_compile_pattern() makes begins with an address
    std::uint64_t id;
    int flags;
    const char* pattern() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

void free_compiled(regex_t& compiled) noexcept { real_regfree(&compiled); }

using Expressions = Twins<Record, regex_t, &free_compiled>;
constinit Expressions expressions;

/// The record of an expression that was compiled for the program, else nullptr.
Record* record_of(const regex_t* expression) noexcept {
    void* const at = reinterpret_cast<void*>(expression->__REPB_PREFIX(buffer));
    if (!is_spread() || at == nullptr || !is_program_memory(at)) return nullptr;
    auto* const record = static_cast<Record*>(at);
    return record->mark == Record::is_record ? record : nullptr;
}

const regex_t* twin_of(const Record* record) noexcept {
    if (auto* const found = expressions.find(record)) return &found->made;
    auto* const twin = Expressions::allocate();
    if (twin == nullptr || real_regcomp(&twin->made, record->pattern(), record->flags) != 0) {
        die(exit_environment,
            "the regular expression \"%s\" of another node cannot be compiled here: its locale or "
            "memory is not this node's",
            record->pattern());
    }
    return &expressions.keep(twin, record)->made;
}

int compile(regex_t* expression, const char* pattern, int flags) noexcept {
    const std::size_t bytes = strlen(pattern) + 1;
    auto* const twin = Expressions::allocate();
    auto* const record =
        static_cast<Record*>(allocate_for_program(sizeof(Record) + bytes, 64, false));
    int result = twin != nullptr && record != nullptr ? 0 : REG_ESPACE;
    if (result == 0) result = real_regcomp(&twin->made, pattern, flags);
    if (result != 0) {
        libc_free(twin);
        release_block(record);
        return result;
    }
    *record = {Record::is_record, Expressions::next_id(), flags};
    memcpy(record + 1, pattern, bytes);
    const std::size_t groups = twin->made.re_nsub;
    expressions.keep(twin, record);
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
    return real_regexec(twin_of(record), text, count, matches, flags);
}

void regfree(regex_t* expression) {
    Record* const record = record_of(expression);
    if (record == nullptr) return real_regfree(expression);
    expressions.drop(record);
    release_block(record);
    expression->__REPB_PREFIX(buffer) = nullptr;
}

}  // extern "C"
