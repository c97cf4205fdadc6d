// SPDX-License-Identifier: BSD-3-Clause
// Role: the families of system libraries, and the proofs that an object is one of them.
// Invariant: a name only asks the question. The answer is the file (libc's parts lie beside
// libc.so.6), an entry point that nothing else has (language runtimes, which come with a compiler,
// from any folder), or that the runtime itself needs it.
#include "omp/process/system_libraries.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <span>

#include "base/own_libraries.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::omp {
namespace {

/// Parts of libc, by file name up to the first ".so".
constexpr std::string_view libc_stems[] = {
    "libc",          "libm",           "ld-linux-x86-64", "libpthread",   "libdl",
    "librt",         "libmvec",        "libanl",          "libnsl",       "libresolv",
    "libutil",       "libthread_db",   "libBrokenLocale", "libnss_files", "libnss_dns",
    "libnss_compat", "libnss_systemd", "libcrypt",        "libmemusage",  "libpcprofile"};

/// A runtime that comes with a compiler or a tool, and an entry point that proves it.
struct Runtime {
    std::string_view stem, entry;
};
constexpr Runtime runtimes[] = {{"libstdc++", "__gxx_personality_v0"},
                                {"libgcc_s", "_Unwind_Resume"},
                                {"libgfortran", "_gfortran_st_write"},
                                {"libquadmath", "quadmath_snprintf"},
                                {"libatomic", "__atomic_load"},
                                {"libitm", "_ITM_beginTransaction"},
                                {"libc++", "_ZNSt3__14coutE"},
                                {"libc++abi", "__cxa_throw"},
                                {"libunwind", "_Unwind_Resume"},
                                {"libunwind", "unw_backtrace"},
                                {"libflang", "f90_init"},
                                {"libFortranRuntime", "_FortranAioBeginExternalListOutput"},
                                {"libgomp", "GOMP_parallel"},
                                {"libomp", "__kmpc_fork_call"},
                                {"libiomp5", "__kmpc_fork_call"},
                                {"libomp", "hiroba_version_VERSION"},  // our stand-ins
                                {"libiomp5", "hiroba_version_VERSION"},
                                {"libasan", "__asan_init"},
                                {"libubsan", "__ubsan_handle_add_overflow"},
                                {"libtsan", "__tsan_init"},
                                {"liblsan", "__lsan_do_leak_check"},
                                {"libhwasan", "__hwasan_init"},
                                {"libprofiler", "ProfilerStart"},
                                {"libgcov", "__gcov_dump"}};

template <class Visit>
void for_each_entry(std::uintptr_t dynamic, Visit&& visit) noexcept {
    if (dynamic == 0) return;
    for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(dynamic); entry->d_tag != DT_NULL;
         ++entry) {
        visit(*entry);
    }
}

/// The address in an entry of the dynamic section: the loader has made it absolute, or not.
std::uintptr_t pointer_in(std::uintptr_t bias, std::uintptr_t dynamic, ElfW(Sxword) tag) noexcept {
    std::uintptr_t found = 0;
    for_each_entry(dynamic, [&](const ElfW(Dyn) & entry) {
        if (entry.d_tag == tag) found = entry.d_un.d_ptr;
    });
    return found != 0 && found < bias ? found + bias : found;
}

std::string_view file_name(std::string_view path) noexcept {
    return path.substr(path.rfind('/') + 1);
}

std::string_view stem_of(std::string_view path) noexcept {
    const std::string_view file = file_name(path);
    return file.substr(0, file.find(".so"));
}

/// A file as the kernel knows it.
struct FileIdentity {
    std::uint64_t device = 0, number = 0;
    bool exists = false;
};

FileIdentity identity_of(const char* path) noexcept {
    struct stat status {};
    if (dsm::kernel_call(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0) return {};
    return {status.st_dev, status.st_ino, true};
}

/// Whether `path` is the file of that name beside libc.so.6, by whatever way it was reached.
bool lies_beside_libc(std::string_view path) noexcept {
    dl_find_object libc;
    void* const in_libc = const_cast<char*>(gnu_get_libc_version());
    if (_dl_find_object(in_libc, &libc) != 0) return false;
    const std::string_view libc_path = libc.dlfo_link_map->l_name;
    const std::string_view folder = libc_path.substr(0, libc_path.rfind('/') + 1);
    const std::string_view file = file_name(path);
    if (path.substr(0, path.size() - file.size()) == folder) return true;
    if (path.find('/') == std::string_view::npos) return false;

    std::array<char, PATH_MAX> own{}, beside{};
    if (path.size() >= own.size() || folder.size() + file.size() >= beside.size()) return false;
    std::memcpy(own.data(), path.data(), path.size());
    std::memcpy(beside.data(), folder.data(), folder.size());
    std::memcpy(beside.data() + folder.size(), file.data(), file.size());
    const FileIdentity a = identity_of(own.data()), b = identity_of(beside.data());
    return a.exists && b.exists && a.device == b.device && a.number == b.number;
}

bool matches(const ElfW(Sym) & symbol, const char* strings, std::string_view name) noexcept {
    return symbol.st_shndx != SHN_UNDEF && name == strings + symbol.st_name;
}

std::uint32_t gnu_hash(std::string_view name) noexcept {
    std::uint32_t hash = 5381;
    for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
    return hash;
}

/// The definition of `name` for others in the object with this dynamic section; nullptr: none.
const ElfW(Sym) *
    find_symbol(std::uintptr_t bias, std::uintptr_t dynamic, std::string_view name) noexcept {
    const auto* const symbols =
        reinterpret_cast<const ElfW(Sym)*>(pointer_in(bias, dynamic, DT_SYMTAB));
    const auto* const strings = reinterpret_cast<const char*>(pointer_in(bias, dynamic, DT_STRTAB));
    if (symbols == nullptr || strings == nullptr) return nullptr;
    if (const auto* const table =
            reinterpret_cast<const std::uint32_t*>(pointer_in(bias, dynamic, DT_GNU_HASH))) {
        const std::uint32_t buckets = table[0], first = table[1], words = table[2];
        const std::uint32_t* const bucket =
            table + 4 + std::size_t{2} * words;  // behind the Bloom filter
        const std::uint32_t* const chain = bucket + buckets;
        const std::uint32_t hash = gnu_hash(name);
        if (buckets == 0) return nullptr;
        for (std::uint32_t i = bucket[hash % buckets]; i >= first && i != 0; ++i) {
            const std::uint32_t of_chain = chain[i - first];
            if ((of_chain | 1) == (hash | 1) && matches(symbols[i], strings, name))
                return &symbols[i];
            if ((of_chain & 1) != 0) return nullptr;
        }
        return nullptr;
    }
    const auto* const table =
        reinterpret_cast<const std::uint32_t*>(pointer_in(bias, dynamic, DT_HASH));
    if (table == nullptr) return nullptr;
    for (std::uint32_t i = 0; i < table[1]; ++i)
        if (matches(symbols[i], strings, name)) return &symbols[i];
    return nullptr;
}

/// The objects this library cannot do without, by bias.
class OwnNeeds {
public:
    OwnNeeds() noexcept {
        dl_find_object own;
        if (_dl_find_object(reinterpret_cast<void*>(&is_system_library), &own) != 0) return;
        const link_map* first = own.dlfo_link_map;
        while (first->l_prev != nullptr) first = first->l_prev;
        add(*own.dlfo_link_map);
        for (std::size_t i = 0; i < count_; ++i) add_needs_of(*objects_[i], first);
    }
    bool contain(std::uintptr_t bias) const noexcept {
        return std::ranges::any_of(std::span(objects_).first(count_),
                                   [bias](const link_map* each) { return each->l_addr == bias; });
    }

private:
    void add(const link_map& object) noexcept {
        if (count_ < objects_.size() && !contain(object.l_addr)) objects_[count_++] = &object;
    }
    void add_needs_of(const link_map& object, const link_map* first) noexcept {
        const auto dynamic = reinterpret_cast<std::uintptr_t>(object.l_ld);
        const auto* const strings =
            reinterpret_cast<const char*>(pointer_in(object.l_addr, dynamic, DT_STRTAB));
        for_each_entry(dynamic, [&](const ElfW(Dyn) & entry) {
            if (entry.d_tag != DT_NEEDED || strings == nullptr) return;
            const std::string_view wanted = file_name(strings + entry.d_un.d_val);
            for (const link_map* each = first; each != nullptr; each = each->l_next)
                if (file_name(each->l_name) == wanted) return add(*each);
        });
    }

    std::array<const link_map*, 32> objects_{};
    std::size_t count_ = 0;
};

bool decide(std::string_view path, std::uintptr_t bias, std::uintptr_t dynamic) noexcept {
    if (is_own_library(bias)) return true;
    const OwnNeeds own_needs;  // no static: its guard is one of those we stand in for
    if (dynamic != 0 && own_needs.contain(bias)) return true;
    if (bias != 0 && bias == getauxval(AT_BASE)) return true;
    return why_system_library(path, bias, dynamic) != nullptr;
}

/// Answers given before. A path's hash and, in the lowest bit, the answer; 0: free.
constinit std::array<std::atomic<std::uint64_t>, 512> answers{};

std::uint64_t hash_of(std::string_view path) noexcept {
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
    for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    return hash | 2;  // never 0
}

}  // namespace

const char* why_system_library(std::string_view path, std::uintptr_t bias,
                               std::uintptr_t dynamic) noexcept {
    const std::string_view stem = stem_of(path);
    if (std::ranges::find(libc_stems, stem) != std::end(libc_stems))
        return lies_beside_libc(path) ? "a part of the C library" : nullptr;
    const bool is_runtime = std::ranges::any_of(runtimes, [&](const Runtime& runtime) {
        return runtime.stem == stem && (defines_symbol(bias, dynamic, runtime.entry) ||
                                        (dynamic == 0 && lies_beside_libc(path)));
    });
    return is_runtime ? "the runtime of a language or a tool" : nullptr;
}

bool defines_symbol(std::uintptr_t bias, std::uintptr_t dynamic, std::string_view name) noexcept {
    return find_symbol(bias, dynamic, name) != nullptr;
}

void* find_in_libc(std::string_view name) noexcept {
    dl_find_object libc;
    void* const in_libc = const_cast<char*>(gnu_get_libc_version());
    if (_dl_find_object(in_libc, &libc) != 0) return nullptr;
    const link_map& object = *libc.dlfo_link_map;
    const ElfW(Sym)* const symbol =
        find_symbol(object.l_addr, reinterpret_cast<std::uintptr_t>(object.l_ld), name);
    if (symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return nullptr;
    return reinterpret_cast<void*>(object.l_addr + symbol->st_value);
}

bool has_code_of_program_objects(std::string_view path) noexcept {
    constexpr std::string_view stems[] = {"libstdc++", "libc++", "libc++abi"};
    return std::ranges::find(stems, stem_of(path)) != std::end(stems);
}

bool has_relocation(std::uintptr_t bias, std::uintptr_t dynamic,
                    bool (*wanted)(const Relocation& relocation)) noexcept {
    const auto* const symbols =
        reinterpret_cast<const ElfW(Sym)*>(pointer_in(bias, dynamic, DT_SYMTAB));
    const auto* const strings = reinterpret_cast<const char*>(pointer_in(bias, dynamic, DT_STRTAB));
    if (symbols == nullptr || strings == nullptr) return false;
    // What it asks for it has relocated: of functions that it calls by a table, and of others.
    struct Table {
        ElfW(Sxword) at, size;
    };
    for (const Table& table : {Table{DT_JMPREL, DT_PLTRELSZ}, Table{DT_RELA, DT_RELASZ}}) {
        const auto* const begin =
            reinterpret_cast<const ElfW(Rela)*>(pointer_in(bias, dynamic, table.at));
        std::size_t bytes = 0;
        for_each_entry(dynamic, [&](const ElfW(Dyn) & entry) {
            if (entry.d_tag == table.size) bytes = entry.d_un.d_val;
        });
        if (begin == nullptr) continue;
        for (const ElfW(Rela) & each : std::span(begin, bytes / sizeof *begin)) {
            if (ELF64_R_TYPE(each.r_info) == R_X86_64_RELATIVE) continue;  // millions
            const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(each.r_info)];
            const bool elsewhere = symbol.st_shndx == SHN_UNDEF;
            if (wanted({ELF64_R_TYPE(each.r_info), elsewhere ? strings + symbol.st_name : ""}))
                return true;
        }
    }
    return false;
}

bool is_system_library(std::string_view path, std::uintptr_t bias,
                       std::uintptr_t dynamic) noexcept {
    const std::uint64_t hash = hash_of(path) & ~std::uint64_t{1};
    std::size_t at = hash % answers.size();
    for (std::size_t looked = 0; looked < answers.size(); ++looked) {
        // Relaxed: the word is all there is to know.
        const std::uint64_t word = answers[at].load(std::memory_order_relaxed);
        if ((word & ~std::uint64_t{1}) == hash) return (word & 1) != 0;
        if (word == 0) break;
        at = (at + 1) % answers.size();
    }
    const bool answer = decide(path, bias, dynamic);
    std::uint64_t free = 0;  // lost to another thread, it is decided again
    answers[at].compare_exchange_strong(free, hash | std::uint64_t{answer},
                                        std::memory_order_relaxed);
    return answer;
}

bool is_system_code(const void* code) noexcept {
    dl_find_object found;
    if (_dl_find_object(const_cast<void*>(code), &found) != 0) return false;
    const link_map& object = *found.dlfo_link_map;
    return is_system_library(object.l_name, object.l_addr,
                             reinterpret_cast<std::uintptr_t>(object.l_ld));
}

}  // namespace hiroba::omp
