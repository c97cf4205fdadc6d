// SPDX-License-Identifier: BSD-3-Clause
// Role: iconv() and its kin for the program. libc's descriptor leads to libraries that each node
// opens for itself; the program's is a record in global memory, and each node works on a twin made
// from it at its first use there. How far the conversion is lies in the record.
// Invariant: before each call the twin has the record's state, behind it the record the twin's. A
// thread that goes on with another's descriptor has synchronized with it.
#include <gconv.h>
#include <iconv.h>
#include <string.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/libc/handles/twins.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(iconv_open);
HIROBA_REAL(iconv);
HIROBA_REAL(iconv_close);

namespace hiroba::abi {
namespace {

constexpr std::size_t steps_max = 4;  ///< libc goes by way of one character set, so it needs two

struct State {
    int calls[steps_max];
    mbstate_t shift[steps_max];
};

/// In global memory; both names with their zeros follow.
struct Record {
    std::uint64_t id;
    std::size_t steps;
    State state;
    std::size_t to_bytes;
    const char* to() const noexcept { return reinterpret_cast<const char*>(this + 1); }
    const char* from() const noexcept { return to() + to_bytes; }
};

void free_made(iconv_t& made) noexcept { real_iconv_close(made); }

using Conversions = Twins<Record, iconv_t, &free_made>;
constinit Conversions conversions;

/// What libc's descriptor is (gconv.h).
__gconv_info& info_of(iconv_t made) noexcept { return *static_cast<__gconv_info*>(made); }

State state_of(iconv_t made, std::size_t steps) noexcept {
    State state{};
    for (std::size_t i = 0; i < steps; ++i) {
        const __gconv_step_data& data = info_of(made).__data[i];
        state.calls[i] = data.__invocation_counter;
        state.shift[i] = *data.__statep;
    }
    return state;
}

void set_state(iconv_t made, const State& state, std::size_t steps) noexcept {
    for (std::size_t i = 0; i < steps; ++i) {
        __gconv_step_data& data = info_of(made).__data[i];
        data.__invocation_counter = state.calls[i];
        *data.__statep = state.shift[i];
    }
}

Record* as_record(iconv_t descriptor) noexcept {
    return is_spread() && is_program_memory(descriptor) ? static_cast<Record*>(descriptor)
                                                        : nullptr;
}

iconv_t twin_of(const Record* record) noexcept {
    if (auto* const found = conversions.find(record)) return found->made;
    auto* const twin = Conversions::allocate();
    const iconv_t made = real_iconv_open(record->to(), record->from());
    if (twin == nullptr || made == reinterpret_cast<iconv_t>(-1) ||
        info_of(made).__nsteps != record->steps) {
        die(exit_environment,
            "the conversion from %s to %s of another node cannot be made here: %s. Install its "
            "modules (gconv) on every host",
            record->from(), record->to(), strerror(errno));
    }
    twin->made = made;
    return conversions.keep(twin, record)->made;
}

/// The program's descriptor for what libc has made; libc's own where it needs more steps than a
/// record has room for. -1 and errno.
iconv_t hand_over(iconv_t made, const char* to, const char* from) noexcept {
    if (made == reinterpret_cast<iconv_t>(-1) || info_of(made).__nsteps > steps_max) return made;
    const std::size_t to_bytes = strlen(to) + 1, from_bytes = strlen(from) + 1;
    auto* const twin = Conversions::allocate();
    auto* const record = static_cast<Record*>(
        allocate_for_program(sizeof(Record) + to_bytes + from_bytes, 64, false));
    if (twin == nullptr || record == nullptr) {
        libc_free(twin);
        release_block(record);
        real_iconv_close(made);
        errno = ENOMEM;
        return reinterpret_cast<iconv_t>(-1);
    }
    const std::size_t steps = info_of(made).__nsteps;
    *record = {Conversions::next_id(), steps, state_of(made, steps), to_bytes};
    char* const names = reinterpret_cast<char*>(record + 1);
    memcpy(names, to, to_bytes);
    memcpy(names + to_bytes, from, from_bytes);
    twin->made = made;
    conversions.keep(twin, record);
    return record;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

iconv_t iconv_open(const char* to, const char* from) {
    const iconv_t made = real_iconv_open(to, from);
    return is_spread() && is_for_program(__builtin_return_address(0)) ? hand_over(made, to, from)
                                                                      : made;
}

size_t iconv(iconv_t descriptor, char** from, size_t* from_bytes, char** to, size_t* to_bytes) {
    Record* const record = as_record(descriptor);
    if (record == nullptr) return real_iconv(descriptor, from, from_bytes, to, to_bytes);
    const iconv_t twin = twin_of(record);
    set_state(twin, record->state, record->steps);
    const size_t result = real_iconv(twin, from, from_bytes, to, to_bytes);
    const State after = state_of(twin, record->steps);
    // What has not changed is not written: another node may read it.
    if (memcmp(&after, &record->state, sizeof after) != 0) record->state = after;
    return result;
}

int iconv_close(iconv_t descriptor) {
    Record* const record = as_record(descriptor);
    if (record == nullptr) return real_iconv_close(descriptor);
    conversions.drop(record);
    give_back(record);
    return 0;
}

}  // extern "C"
