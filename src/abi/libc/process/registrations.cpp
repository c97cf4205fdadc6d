// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/registrations.hpp"

#include <libintl.h>
#include <printf.h>
#include <string.h>

#include <mutex>

#include "abi/libc/memory/kept_texts.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(register_printf_specifier);
HIROBA_REAL(textdomain);
HIROBA_REAL(bindtextdomain);
HIROBA_REAL(bind_textdomain_codeset);

namespace hiroba::abi {

enum class Registering { conversion, domain, folder, codeset };

struct Registration {
    static constexpr std::size_t text_bytes = 512;
    Registration* next = nullptr;
    Registering kind{};
    int conversion = 0;
    printf_function* print = nullptr;
    printf_arginfo_size_function* arguments = nullptr;
    char domain[text_bytes] = {};
    char text[text_bytes] = {};  ///< the folder or character set
};

namespace {

constinit Latch writing;
constinit Registration* first_made = nullptr;         ///< node 0
constinit Registration* last_made = nullptr;          ///< node 0
constinit const Registration* repeated_to = nullptr;  ///< others

bool copy(char* to, const char* from) noexcept {
    if (from == nullptr || strlen(from) >= Registration::text_bytes) return false;
    strcpy(to, from);
    return true;
}

/// Behind a call that has succeeded.
void write_down(const Registration& made, const char* call) noexcept {
    if (world()->job.self.value == 0) {
        bool zeroed = false;
        void* const room = world()->heap->allocate(sizeof made, 64, &zeroed);
        if (room == nullptr)
            die(exit_environment, "no room for what %s says: set HIROBA_HEAP", call);
        auto* const kept = new (room) Registration(made);
        const std::scoped_lock guard{writing};
        (last_made == nullptr ? first_made : last_made->next) = kept;
        last_made = kept;
    }
    process_state_changed(call);
}

void write_down_domain(Registering kind, const char* domain, const char* text,
                       const char* call) noexcept {
    Registration made;
    made.kind = kind;
    const bool fits = copy(made.domain, domain) && (text == nullptr || copy(made.text, text));
    if (fits)
        write_down(made, call);
    else
        say("%s with a text of more than %lu bytes: the other nodes do not repeat it", call,
            Registration::text_bytes - 1);
}

int register_conversion(int conversion, printf_function* print,
                        printf_arginfo_size_function* arguments, bool by_program) noexcept {
    const int result = real_register_printf_specifier(conversion, print, arguments);
    if (result != 0 || !by_program) return result;
    Registration made;
    made.conversion = conversion;
    made.print = print;
    made.arguments = arguments;
    write_down(made, "register_printf_specifier()");
    return result;
}

void repeat(const Registration& made) noexcept {
    switch (made.kind) {
        case Registering::conversion:
            real_register_printf_specifier(made.conversion, made.print, made.arguments);
            break;
        case Registering::domain: real_textdomain(made.domain); break;
        case Registering::folder: real_bindtextdomain(made.domain, made.text); break;
        case Registering::codeset: real_bind_textdomain_codeset(made.domain, made.text); break;
    }
}

}  // namespace

const Registration* registrations() noexcept { return first_made; }

void repeat_registrations(const Registration* first) noexcept {
    for (;;) {
        const Registration* const next = repeated_to == nullptr ? first : repeated_to->next;
        if (next == nullptr) return;
        const Registration copied = *next;  // libc's calls of the kernel cannot fault it in
        repeat(copied);
        repeated_to = next;
    }
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int register_printf_specifier(int conversion, printf_function print,
                              printf_arginfo_size_function arguments) noexcept {
    return register_conversion(conversion, print, arguments, HIROBA_CALL_OF_PROGRAM());
}

/// libc's older one is the same: the function does not look at the sizes of the arguments.
int register_printf_function(int conversion, printf_function print,
                             printf_arginfo_function arguments) noexcept {
    auto* const as_any = reinterpret_cast<void (*)()>(arguments);
    return register_conversion(conversion, print,
                               reinterpret_cast<printf_arginfo_size_function*>(as_any),
                               HIROBA_CALL_OF_PROGRAM());
}

char* textdomain(const char* domain) noexcept {
    char* const result = real_textdomain(domain);
    if (result != nullptr && domain != nullptr && HIROBA_CALL_OF_PROGRAM())
        write_down_domain(Registering::domain, domain, nullptr, "textdomain()");
    return kept_for(result, __builtin_return_address(0));
}

char* bindtextdomain(const char* domain, const char* folder) noexcept {
    char* const result = real_bindtextdomain(domain, folder);
    if (result != nullptr && folder != nullptr && HIROBA_CALL_OF_PROGRAM())
        write_down_domain(Registering::folder, domain, folder, "bindtextdomain()");
    return kept_for(result, __builtin_return_address(0));
}

char* bind_textdomain_codeset(const char* domain, const char* codeset) noexcept {
    char* const result = real_bind_textdomain_codeset(domain, codeset);
    if (result != nullptr && codeset != nullptr && HIROBA_CALL_OF_PROGRAM())
        write_down_domain(Registering::codeset, domain, codeset, "bind_textdomain_codeset()");
    return kept_for(result, __builtin_return_address(0));
}

}  // extern "C"
