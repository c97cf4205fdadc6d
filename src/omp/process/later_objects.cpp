// SPDX-License-Identifier: BSD-3-Clause
// Role: dynamic sections of what is being loaded.
// Invariant: the loader keeps pointers to the entries of a dynamic section and looks at their
// values when it calls initializers; so a value changed before counts. glibc has done so since 2.1.
#include "omp/process/later_objects.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <string_view>

namespace hiroba::omp {
namespace {

template <class Visit>
void for_each_entry(const LoadedObject& object, Visit&& visit) {
    if (object.dynamic == 0) return;
    for (auto* entry = reinterpret_cast<ElfW(Dyn)*>(object.dynamic); entry->d_tag != DT_NULL;
         ++entry) {
        visit(*entry);
    }
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The strings of a dynamic section; the loader has made its address absolute, or not.
const char* strings_of(const LoadedObject& object) {
    std::uintptr_t strings = 0;
    for_each_entry(object, [&](const ElfW(Dyn) & entry) {
        if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    });
    if (strings != 0 && strings < object.bias) strings += object.bias;
    return reinterpret_cast<const char*>(strings);
}

/// The names others ask for an object by.
struct Names {
    std::string_view file, soname;
};

std::vector<Names> names_of_all(const std::vector<LoadedObject>& all) {
    std::vector<Names> names;
    for (const LoadedObject& object : all) {
        Names of{file_name(object.path), {}};
        const char* const strings = strings_of(object);
        for_each_entry(object, [&](const ElfW(Dyn) & entry) {
            if (entry.d_tag == DT_SONAME && strings != nullptr)
                of.soname = strings + entry.d_un.d_val;
        });
        names.push_back(of);
    }
    return names;
}

// In place of DT_INIT. Calls between this library's code and itself are direct.
void nothing(int, char**, char**) {}

}  // namespace

std::vector<std::uintptr_t> loaded_biases() {
    std::vector<std::uintptr_t> biases;
    for (const LoadedObject& object : loaded_objects()) biases.push_back(object.bias);
    return biases;
}

std::vector<LoadedObject> objects_since(const std::vector<std::uintptr_t>& known) {
    std::vector<LoadedObject> all = loaded_objects();
    std::erase_if(all, [&](const LoadedObject& object) {
        return std::ranges::find(known, object.bias) != known.end();
    });
    return all;
}

bool needs_are_met(const std::vector<LoadedObject>& objects) {
    const std::vector<LoadedObject> all = loaded_objects();
    const std::vector<Names> names = names_of_all(all);
    bool met = true;
    for (const LoadedObject& object : objects) {
        const char* const strings = strings_of(object);
        for_each_entry(object, [&](const ElfW(Dyn) & entry) {
            if (entry.d_tag != DT_NEEDED || strings == nullptr) return;
            const std::string_view wanted = file_name(strings + entry.d_un.d_val);
            met &= std::ranges::any_of(names, [&](const Names& each) {
                return each.file == wanted || each.soname == wanted;
            });
        });
    }
    return met;
}

// The loader maps as much more as the alignment asks for, and gives it back; the kernel aligns what
// may lie in huge pages. What is needed, and smaller, then goes above it.
std::uintptr_t top_of_room(std::uintptr_t top, const std::vector<LoadedObject>& objects) noexcept {
    constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
    const LoadedObject& first = objects.front();
    const bool is_large = first.end - first.bias >= huge_page_bytes;
    const std::size_t alignment = std::max(first.alignment, is_large ? huge_page_bytes : 0);
    if (top != 0 && top - first.end < alignment) return top;
    std::uintptr_t highest = 0;
    for (const LoadedObject& object : objects) highest = std::max(highest, object.end);
    return highest;
}

void hold_back_initializers(const LoadedObject& object) noexcept {
    const auto instead = reinterpret_cast<std::uintptr_t>(&nothing) - object.bias;
    // Only once: after its relocation the section cannot be written any more.
    if (has_no_initializers(object)) return;
    for_each_entry(object, [&](ElfW(Dyn) & entry) {
        if (entry.d_tag == DT_INIT) entry.d_un.d_ptr = instead;
        if (entry.d_tag == DT_INIT_ARRAYSZ) entry.d_un.d_val = 0;
    });
}

bool has_no_initializers(const LoadedObject& object) noexcept {
    const auto instead = reinterpret_cast<std::uintptr_t>(&nothing) - object.bias;
    bool none = true;
    for_each_entry(object, [&](const ElfW(Dyn) & entry) {
        if (entry.d_tag == DT_INIT) none &= entry.d_un.d_ptr == instead;
        if (entry.d_tag == DT_INIT_ARRAYSZ) none &= entry.d_un.d_val == 0;
    });
    return none;
}

}  // namespace hiroba::omp
