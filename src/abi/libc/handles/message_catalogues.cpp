// SPDX-License-Identifier: BSD-3-Clause
// Role: catopen() and its kin for the program: a record in global memory, and on each node a twin
// that libc has opened there. Messages are handed out as kept_texts.hpp says.
// Invariant: all nodes have the same catalogues; one that a node lacks ends the job, where others
// would print another text.
#include <nl_types.h>
#include <string.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/libc/handles/twins.hpp"
#include "abi/libc/memory/kept_texts.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(catopen);
HIROBA_REAL(catgets);
HIROBA_REAL(catclose);

namespace hiroba::abi {
namespace {

/// In global memory; the name with its zero follows.
struct Record {
    std::uint64_t id;
    int flag;
    const char* name() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

void free_made(nl_catd& made) noexcept { real_catclose(made); }

using Catalogues = Twins<Record, nl_catd, &free_made>;
constinit Catalogues catalogues;

nl_catd none() noexcept { return reinterpret_cast<nl_catd>(-1); }

Record* as_record(nl_catd catalogue) noexcept {
    return is_spread() && is_program_memory(catalogue) ? static_cast<Record*>(catalogue) : nullptr;
}

nl_catd twin_of(const Record* record) noexcept {
    if (auto* const found = catalogues.find(record)) return found->made;
    auto* const twin = Catalogues::allocate();
    const nl_catd made = real_catopen(record->name(), record->flag);
    if (twin == nullptr || made == none()) {
        die(exit_environment,
            "the message catalogue %s of another node cannot be opened here: %s. Install it on "
            "every host",
            record->name(), strerror(errno));
    }
    twin->made = made;
    return catalogues.keep(twin, record)->made;
}

nl_catd hand_over(nl_catd made, const char* name, int flag) noexcept {
    if (made == none()) return made;
    const std::size_t bytes = strlen(name) + 1;
    auto* const twin = Catalogues::allocate();
    auto* const record =
        static_cast<Record*>(allocate_for_program(sizeof(Record) + bytes, 64, false));
    if (twin == nullptr || record == nullptr) {
        libc_free(twin);
        release_block(record);
        real_catclose(made);
        errno = ENOMEM;
        return none();
    }
    *record = {Catalogues::next_id(), flag};
    memcpy(record + 1, name, bytes);
    twin->made = made;
    catalogues.keep(twin, record);
    return record;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

nl_catd catopen(const char* name, int flag) {
    const nl_catd made = real_catopen(name, flag);
    return is_spread() && is_for_program(__builtin_return_address(0)) ? hand_over(made, name, flag)
                                                                      : made;
}

char* catgets(nl_catd catalogue, int set, int number, const char* otherwise) noexcept {
    const Record* const record = as_record(catalogue);
    if (record == nullptr) return real_catgets(catalogue, set, number, otherwise);
    char* const text = real_catgets(twin_of(record), set, number, otherwise);
    return text == otherwise ? text : const_cast<char*>(keep_text(text));
}

int catclose(nl_catd catalogue) noexcept {
    Record* const record = as_record(catalogue);
    if (record == nullptr) return real_catclose(catalogue);
    catalogues.drop(record);
    give_back(record);
    return 0;
}

}  // extern "C"
