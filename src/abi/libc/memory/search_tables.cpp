// SPDX-License-Identifier: BSD-3-Clause
// Role: hsearch() and its kin for the program: libc would have the table from its own heap, and the
// one without a name in a variable of its own. Open addressing, a row's text compared only where
// its hash is the same.
// Invariant: an entry stays where it is until the table is destroyed, as in libc.
#include <search.h>
#include <string.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/libc/handles/kept_objects.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(hcreate);
HIROBA_REAL(hsearch);
HIROBA_REAL(hdestroy);
HIROBA_REAL(hcreate_r);
HIROBA_REAL(hsearch_r);
HIROBA_REAL(hdestroy_r);

namespace hiroba::abi {
namespace {

/// libc's `struct _ENTRY` is its own business; this is ours under its name.
struct Row {
    std::uint64_t hash;  ///< 0: free
    ENTRY entry;
};

Row* rows_of(const hsearch_data& table) noexcept { return reinterpret_cast<Row*>(table.table); }

std::uint64_t hash_of(const char* key) noexcept {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
    for (; *key != '\0'; ++key) hash = (hash ^ static_cast<unsigned char>(*key)) * 0x100'0000'01B3;
    return hash != 0 ? hash : 1;
}

int create(std::size_t entries, hsearch_data* table) noexcept {
    if (table == nullptr) {
        errno = EINVAL;
        return 0;
    }
    if (table->table != nullptr) return 0;
    if (entries >= std::size_t{1} << 30) {
        errno = ENOMEM;
        return 0;
    }
    const std::size_t size = entries + entries / 4 + 3;
    void* const rows = allocate_for_program(size * sizeof(Row), alignof(Row), true);
    if (rows == nullptr) return 0;
    table->table = static_cast<decltype(table->table)>(rows);
    table->size = static_cast<unsigned>(size);
    table->filled = 0;
    return 1;
}

int search(ENTRY entry, ACTION action, ENTRY** found, hsearch_data* table) noexcept {
    Row* const rows = rows_of(*table);
    const std::uint64_t hash = hash_of(entry.key);
    std::size_t i = hash % table->size;
    for (std::size_t tried = 0; tried < table->size && rows[i].hash != 0; ++tried) {
        if (rows[i].hash == hash && strcmp(rows[i].entry.key, entry.key) == 0) {
            *found = &rows[i].entry;
            return 1;
        }
        i = i + 1 == table->size ? 0 : i + 1;
    }
    *found = nullptr;
    if (action == FIND) {
        errno = ESRCH;
        return 0;
    }
    if (rows[i].hash != 0) {  // the table is full
        errno = ENOMEM;
        return 0;
    }
    rows[i] = {hash, entry};
    ++table->filled;
    *found = &rows[i].entry;
    return 1;
}

void destroy(hsearch_data* table) noexcept {
    if (table == nullptr) {
        errno = EINVAL;
        return;
    }
    release_block(table->table);
    table->table = nullptr;
}

bool serves_program(const void* return_address) noexcept {
    return is_spread() && is_for_program(return_address);
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#define HIROBA_CALLER __builtin_return_address(0)

#pragma GCC visibility push(default)
extern "C" {

int hcreate_r(size_t entries, struct hsearch_data* table) noexcept {
    return serves_program(HIROBA_CALLER) ? create(entries, table) : real_hcreate_r(entries, table);
}
int hsearch_r(ENTRY entry, ACTION action, ENTRY** found, struct hsearch_data* table) noexcept {
    return serves_program(HIROBA_CALLER) ? search(entry, action, found, table)
                                         : real_hsearch_r(entry, action, found, table);
}
void hdestroy_r(struct hsearch_data* table) noexcept {
    return serves_program(HIROBA_CALLER) ? destroy(table) : real_hdestroy_r(table);
}

// The table without a name. Who uses it from several threads takes a lock of their own.
int hcreate(size_t entries) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_hcreate(entries);
    const KeptObjectsGuard kept;
    return create(entries, &kept->table);
}
ENTRY* hsearch(ENTRY entry, ACTION action) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_hsearch(entry, action);
    ENTRY* found = nullptr;
    const KeptObjectsGuard kept;
    search(entry, action, &found, &kept->table);
    return found;
}
void hdestroy() noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_hdestroy();
    const KeptObjectsGuard kept;
    destroy(&kept->table);
}

}  // extern "C"
