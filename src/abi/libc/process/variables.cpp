// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes setenv(), unsetenv(), putenv() and clearenv(): on several nodes the environment
// lies in global memory, so that a variable set on node 0 is there on all.
// Invariant: `environ` and every string it leads to are global memory; libc's own functions would
// put memory of one node there. Strings are never freed, as in libc: the program may hold them.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "base/latch.hpp"

HIROBA_REAL(setenv);
HIROBA_REAL(unsetenv);
HIROBA_REAL(putenv);
HIROBA_REAL(clearenv);

namespace hiroba::abi {
namespace {

constinit Latch changing;
constinit char** last_array = nullptr;  ///< made here, with room for `last_capacity` entries
constinit std::size_t last_capacity = 0;

bool is_entry_of(const char* entry, const char* name, std::size_t bytes) noexcept {
    return strncmp(entry, name, bytes) == 0 && entry[bytes] == '=';
}

char** find_entry(const char* name, std::size_t bytes) noexcept {
    if (environ == nullptr) return nullptr;
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (is_entry_of(*entry, name, bytes)) return entry;
    return nullptr;
}

bool append(char* text) noexcept {
    std::size_t count = 0;
    while (environ != nullptr && environ[count] != nullptr) ++count;
    if (environ != last_array || count + 2 > last_capacity) {
        const std::size_t capacity = 2 * count + 16;
        auto* const array =
            static_cast<char**>(allocate_for_program(capacity * sizeof(char*), 16, false));
        if (array == nullptr) return false;
        if (count > 0) memcpy(array, environ, count * sizeof(char*));
        last_array = array;
        last_capacity = capacity;
    }
    last_array[count] = text;
    last_array[count + 1] = nullptr;
    environ = last_array;
    return true;
}

bool put(char* text, std::size_t name_bytes) noexcept {
    char** const entry = find_entry(text, name_bytes);
    if (entry == nullptr) return append(text);
    *entry = text;
    return true;
}

void remove(const char* name, std::size_t bytes) noexcept {
    while (char** entry = find_entry(name, bytes)) {
        for (; *entry != nullptr; ++entry) entry[0] = entry[1];
    }
}

bool is_name(const char* name) noexcept {
    return name != nullptr && *name != '\0' && strchr(name, '=') == nullptr;
}

int set(const char* name, const char* value, bool replace) noexcept {
    if (!is_name(name) || value == nullptr) {
        errno = EINVAL;
        return -1;
    }
    const std::size_t name_bytes = strlen(name), value_bytes = strlen(value);
    const std::scoped_lock guard{changing};
    if (!replace && find_entry(name, name_bytes) != nullptr) return 0;
    auto* const text =
        static_cast<char*>(allocate_for_program(name_bytes + 1 + value_bytes + 1, 16, false));
    if (text == nullptr) return -1;
    // The value ends it. NOLINTNEXTLINE(bugprone-not-null-terminated-result)
    memcpy(text, name, name_bytes);
    text[name_bytes] = '=';
    memcpy(text + name_bytes + 1, value, value_bytes + 1);
    return put(text, name_bytes) ? 0 : -1;
}

/// `text` becomes part of the environment; where other nodes cannot read it, a copy does.
int put_text(char* text) noexcept {
    const char* const equals = strchr(text, '=');
    const std::scoped_lock guard{changing};
    if (equals == nullptr) {
        remove(text, strlen(text));
        return 0;
    }
    if (!is_global(text)) {
        const std::size_t bytes = strlen(text) + 1;
        auto* const copy = static_cast<char*>(allocate_for_program(bytes, 16, false));
        if (copy == nullptr) return -1;
        text = static_cast<char*>(memcpy(copy, text, bytes));
    }
    return put(text, strcspn(text, "=")) ? 0 : -1;
}

int unset(const char* name) noexcept {
    if (!is_name(name)) {
        errno = EINVAL;
        return -1;
    }
    const std::scoped_lock guard{changing};
    remove(name, strlen(name));
    return 0;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int setenv(const char* name, const char* value, int replace) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_setenv(name, value, replace);
    process_state_changed("setenv()");
    return set(name, value, replace != 0);
}

int putenv(char* text) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_putenv(text);
    process_state_changed("putenv()");
    return put_text(text);
}

int unsetenv(const char* name) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_unsetenv(name);
    process_state_changed("unsetenv()");
    return unset(name);
}

int clearenv() noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_clearenv();
    process_state_changed("clearenv()");
    environ = nullptr;
    return 0;
}

}  // extern "C"
