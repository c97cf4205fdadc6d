// SPDX-License-Identifier: BSD-3-Clause
// Role: places and the affinity format.
// Invariant: places are those of the node the calling thread is on; places that are none have no
// processors.
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "abi/gomp/queries.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/world.hpp"
#include "base/cpu_list.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using hiroba::abi::runtime;

namespace {

/// Whether an object was linked with LLVM's runtime. Stand-ins of it may be loaded anyway.
bool needs_llvm(const dl_phdr_info& object) {
    const ElfW(Dyn)* entries = nullptr;
    for (int i = 0; i < object.dlpi_phnum; ++i)
        if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
            entries =
                reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    if (entries == nullptr) return false;
    const char* strings = nullptr;
    for (const auto* each = entries; each->d_tag != DT_NULL; ++each)
        if (each->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(each->d_un.d_ptr);
    // The loader has not made it an address: the kernel's own object, which needs none.
    if (reinterpret_cast<std::uintptr_t>(strings) < object.dlpi_addr) return false;
    for (const auto* each = entries; each->d_tag != DT_NULL; ++each) {
        if (each->d_tag != DT_NEEDED) continue;
        const std::string_view name = strings + each->d_un.d_val;
        if (name.starts_with("libomp.so") || name.starts_with("libiomp5.so")) return true;
    }
    return false;
}

/// Whether the program's runtime is LLVM's, which prints otherwise, and on standard output.
bool is_as_llvm() {
    static std::atomic<int> known{-1};
    int is = known.load(std::memory_order_relaxed);
    if (is >= 0) return is != 0;
    is = dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void*) -> int { return needs_llvm(*object); },
        nullptr);
    known.store(is, std::memory_order_relaxed);
    return is != 0;
}

std::string native_thread_text() {
    if (is_as_llvm()) return std::to_string(gettid());
    char digits[2 + 16 + 1];
    std::snprintf(digits, sizeof digits, "0x%lx", static_cast<unsigned long>(pthread_self()));
    return digits;
}

/// LLVM's runtime writes two in a row as two.
std::string processors_text() {
    std::string text = hiroba::cpu_list(hiroba::own_cpus());
    for (std::size_t at = 0; is_as_llvm() && (at = text.find('-', at)) != std::string::npos; ++at) {
        std::size_t begin = at;
        while (begin > 0 && text[begin - 1] != ',') --begin;
        const int first = std::atoi(text.c_str() + begin), last = std::atoi(text.c_str() + at + 1);
        if (last == first + 1) text[at] = ',';
    }
    return text;
}

std::string field_text(char letter) {
    char host[256] = {};
    switch (letter) {
        case 't': return std::to_string(omp_get_team_num());
        case 'T': return std::to_string(omp_get_num_teams());
        case 'L': return std::to_string(omp_get_level());
        case 'n': return std::to_string(omp_get_thread_num());
        case 'N': return std::to_string(omp_get_num_threads());
        case 'a': return std::to_string(omp_get_ancestor_thread_num(omp_get_level() - 1));
        case 'P': return std::to_string(hiroba::abi::process_for_program());
        case 'i': return native_thread_text();
        case 'A': return processors_text();
        case 'H': gethostname(host, sizeof host - 1); return host;
        default: return "undefined";
    }
}

char letter_of(std::string_view long_name) {
    struct Name {
        std::string_view name;
        char letter;
    };
    constexpr Name names[] = {{"team_num", 't'},         {"num_teams", 'T'},
                              {"nesting_level", 'L'},    {"thread_num", 'n'},
                              {"num_threads", 'N'},      {"ancestor_tnum", 'a'},
                              {"process_id", 'P'},       {"host", 'H'},
                              {"native_thread_id", 'i'}, {"thread_affinity", 'A'}};
    for (const Name& name : names)
        if (name.name == long_name) return name.letter;
    return 0;
}

/// Zeros go behind a sign and behind 0x.
std::size_t first_digit(std::string_view number) {
    return number.starts_with("0x") ? 2 : number.starts_with('-') ? 1 : 0;
}

/// Expands %[[0].][width](letter or {name}); `at` points behind '%'.
std::string expand_field(std::string_view format, std::size_t& at) {
    const auto look = [&] { return at < format.size() ? format[at] : '\0'; };
    bool zero = false, right = false;
    if (look() == '%') return ++at, "%";
    if (look() == '0') zero = true, ++at;
    if (look() == '.') right = true, ++at;
    std::size_t width = 0;
    while (look() >= '0' && look() <= '9')
        width =
            std::min<std::size_t>(width * 10 + static_cast<std::size_t>(format[at++] - '0'), 4096);
    char letter = look();
    if (letter == '{') {
        const std::size_t close = std::min(format.find('}', at), format.size());
        letter = letter_of(format.substr(at + 1, close - at - 1));
        at = close;
    }
    if (at < format.size()) ++at;
    std::string text = field_text(letter);
    const std::size_t blanks = width - std::min(width, text.size());
    if (right && zero && letter != 'H' && letter != 'A')
        text.insert(first_digit(text), blanks, '0');
    else
        text.insert(right ? 0 : text.size(), blanks, ' ');
    return text;
}

std::string_view own_format() {
    const std::string& set = runtime().environment().affinity_format;
    if (!set.empty()) return set;
    return is_as_llvm() ? "OMP: pid %P tid %i thread %n bound to OS proc set {%A}"
                        : "level %L thread %i affinity %A";
}

/// On every node, from the next region on.
void set_format(std::string_view format) {
    runtime().environment().affinity_format = format;
    if (hiroba::abi::world() != nullptr)
        hiroba::abi::process_state_changed("omp_set_affinity_format()");
}

std::string affinity_text(std::string_view format) {
    if (format.empty()) format = own_format();
    std::string text;
    for (std::size_t at = 0; at < format.size();) {
        const char c = format[at++];
        text += c == '%' ? expand_field(format, at) : std::string(1, c);
    }
    return text;
}

void show(std::string text) {
    text += '\n';
    if (is_as_llvm()) {
        std::fputs(text.c_str(), stdout);
        return;
    }
    if (write(STDERR_FILENO, text.data(), text.size()) < 0)
        hiroba::say("omp_display_affinity: stderr takes nothing");
}

std::size_t copy_text(std::string_view text, char* buffer, std::size_t bytes) {
    if (bytes != 0) {
        const std::size_t copied = std::min(text.size(), bytes - 1);
        std::memcpy(buffer, text.data(), copied);
        buffer[copied] = 0;
    }
    return text.size();
}

std::size_t copy_padded(std::string_view text, char* buffer, std::size_t bytes) {
    const std::size_t copied = std::min(text.size(), bytes);
    std::memcpy(buffer, text.data(), copied);
    std::memset(buffer + copied, ' ', bytes - copied);
    return text.size();
}

std::string_view unpadded(const char* text, std::size_t length) {
    while (length > 0 && text[length - 1] == ' ') --length;
    return {text, length};
}

const hiroba::omp::Processors& place_at(std::int64_t place) {
    static const hiroba::omp::Processors none;
    const auto& places = runtime().environment().places;
    const bool is_one = place >= 0 && static_cast<std::uint64_t>(place) < places.size();
    return is_one ? places[static_cast<std::size_t>(place)] : none;
}

template <class Number>
void copy_ids(const hiroba::omp::Processors& from, Number* to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<Number>(from[i]);
}

template <class Number>
void copy_partition(Number* to) {
    const hiroba::omp::Binding binding = runtime().binding();
    for (std::uint32_t i = 0; i < binding.count; ++i)
        to[i] = static_cast<Number>(std::uint64_t{binding.first} + i);
}

}  // namespace

namespace hiroba::abi {
void show_affinity() { show(affinity_text("")); }
}  // namespace hiroba::abi

extern "C" {

int omp_get_num_places() { return static_cast<int>(runtime().environment().places.size()); }
int omp_get_place_num() { return static_cast<int>(runtime().binding().place); }
int omp_get_place_num_procs(int place) { return static_cast<int>(place_at(place).size()); }
void omp_get_place_proc_ids(int place, int* ids) { copy_ids(place_at(place), ids); }
int omp_get_partition_num_places() { return static_cast<int>(runtime().binding().count); }
void omp_get_partition_place_nums(int* places) { copy_partition(places); }

int omp_get_num_places_() { return omp_get_num_places(); }
int omp_get_place_num_() { return omp_get_place_num(); }
int omp_get_place_num_procs_(const std::int32_t* place) { return omp_get_place_num_procs(*place); }
int omp_get_place_num_procs_8_(const std::int64_t* place) {
    return omp_get_place_num_procs(static_cast<int>(*place));
}
void omp_get_place_proc_ids_(const std::int32_t* place, std::int32_t* ids) {
    copy_ids(place_at(*place), ids);
}
void omp_get_place_proc_ids_8_(const std::int64_t* place, std::int64_t* ids) {
    copy_ids(place_at(*place), ids);
}
int omp_get_partition_num_places_() { return omp_get_partition_num_places(); }
void omp_get_partition_place_nums_(std::int32_t* places) { copy_partition(places); }
void omp_get_partition_place_nums_8_(std::int64_t* places) { copy_partition(places); }

void omp_set_affinity_format(const char* format) { set_format(format); }
std::size_t omp_get_affinity_format(char* buffer, std::size_t bytes) {
    return copy_text(own_format(), buffer, bytes);
}
void omp_display_affinity(const char* format) { show(affinity_text(format ? format : "")); }
std::size_t omp_capture_affinity(char* buffer, std::size_t bytes, const char* format) {
    return copy_text(affinity_text(format ? format : ""), buffer, bytes);
}

void omp_set_affinity_format_(const char* format, std::size_t length) {
    set_format(unpadded(format, length));
}
int omp_get_affinity_format_(char* buffer, std::size_t bytes) {
    return static_cast<int>(copy_padded(own_format(), buffer, bytes));
}
void omp_display_affinity_(const char* format, std::size_t length) {
    show(affinity_text(unpadded(format, length)));
}
int omp_capture_affinity_(char* buffer, const char* format, std::size_t bytes, std::size_t length) {
    return static_cast<int>(copy_padded(affinity_text(unpadded(format, length)), buffer, bytes));
}

}  // extern "C"
