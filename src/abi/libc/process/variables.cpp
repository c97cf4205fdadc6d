// SPDX-License-Identifier: BSD-3-Clause
// Role: see variables.hpp; interposes setenv(), unsetenv(), putenv(), clearenv() and getenv().
// Invariant: `environ` and every string it leads to are global memory; libc's own functions would
// put memory of one node there. Strings are never freed, as in libc: the program may hold them.
#include "abi/libc/process/variables.hpp"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/shared_rows.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(setenv);
HIROBA_REAL(unsetenv);
HIROBA_REAL(putenv);
HIROBA_REAL(clearenv);
HIROBA_REAL(getenv);
HIROBA_REAL(secure_getenv);

namespace hiroba::abi {
namespace {

constinit std::atomic<std::uint64_t> seen{0};  ///< the version that this node's `environ` is

/// For its scope the variables are the calling thread's alone, as whoever changed them last left
/// them. What the program has stored in `environ` itself counts where nobody has since.
class Change {
public:
    Change() noexcept { follow_variables(); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() {
        SharedRows& rows = shared_rows();
        rows.environment = environ;
        seen.store(++rows.variables_version);
    }

private:
    RowsAlone alone_;
};

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
    SharedRows& rows = shared_rows();
    if (environ != rows.variables || count + 2 > rows.variables_max) {
        const std::size_t capacity = 2 * count + 16;
        auto* const array =
            static_cast<char**>(allocate_for_program(capacity * sizeof(char*), 16, false));
        if (array == nullptr) return false;
        if (count > 0) memcpy(array, environ, count * sizeof(char*));
        rows.variables = array;
        rows.variables_max = capacity;
    }
    rows.variables[count] = text;
    rows.variables[count + 1] = nullptr;
    environ = rows.variables;
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
    const Change change;
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
    const Change change;
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
    const Change change;
    remove(name, strlen(name));
    return 0;
}

}  // namespace

// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void follow_variables() noexcept {
    const SharedRows& rows = shared_rows();
    const std::uint64_t version = rows.variables_version;
    if (seen.load(std::memory_order_acquire) == version) return;  // pairs with the release below
    // Where the program refers to it, it is the program's, and in global memory.
    if (environ != rows.environment) environ = rows.environment;
    seen.store(version, std::memory_order_release);
}

std::uint64_t variables_version() noexcept { return seen.load(); }

void adopt_variables(char** environment, std::uint64_t version) noexcept {
    if (environ != environment) environ = environment;
    seen.store(version);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int setenv(const char* name, const char* value, int replace) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_setenv(name, value, replace);
    return set(name, value, replace != 0);
}

int putenv(char* text) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_putenv(text);
    return put_text(text);
}

int unsetenv(const char* name) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_unsetenv(name);
    return unset(name);
}

int clearenv() noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_clearenv();
    const Change change;
    environ = nullptr;
    return 0;
}

char* getenv(const char* name) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) follow_variables();
    return real_getenv(name);
}

char* secure_getenv(const char* name) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) follow_variables();
    return real_secure_getenv(name);
}

}  // extern "C"
