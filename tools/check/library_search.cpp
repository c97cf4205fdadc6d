// SPDX-License-Identifier: BSD-3-Clause
// Source of the cache's format: glibc, sysdeps/generic/dl-cache.h (struct cache_file_new).
#include "tools/check/library_search.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace hiroba::tools {
namespace {

constexpr std::string_view cache_magic = "glibc-ld.so.cache1.1";

struct CacheHeader {
    char magic[20];
    std::uint32_t libraries, string_bytes;
    std::uint32_t more[5];
};
struct CacheEntry {
    std::int32_t flags;
    std::uint32_t name, path;  ///< offsets in the file
    std::uint32_t system_version;
    std::uint64_t capabilities;  ///< 0: for any processor
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);
constexpr std::int32_t x86_64_library = 0x0303;

std::vector<std::string> parts_of(const std::string& path) {
    std::vector<std::string> parts;
    std::istringstream text(path);
    for (std::string part; std::getline(text, part, ':');)
        parts.push_back(part.empty() ? "." : part);
    return parts;
}

std::string in_folders(const std::vector<std::string>& folders, const std::string& name) {
    for (const std::string& folder : folders)
        if (::access((folder + "/" + name).c_str(), R_OK) == 0) return folder + "/" + name;
    return {};
}

}  // namespace

LibrarySearch::LibrarySearch(const std::string& cache) {
    if (const char* const path = ::getenv("LD_LIBRARY_PATH"); path != nullptr && *path != '\0')
        folders_of_user_ = parts_of(path);
    std::ifstream file(cache, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const std::size_t start = bytes.find(cache_magic);
    if (start == std::string::npos || bytes.size() - start < sizeof(CacheHeader)) return;
    CacheHeader header;
    std::memcpy(&header, bytes.data() + start, sizeof header);
    const std::size_t list = start + sizeof header;
    if ((bytes.size() - list) / sizeof(CacheEntry) < header.libraries) return;
    const auto text_at = [&](std::uint32_t offset) -> std::string {
        return offset < bytes.size() - start ? std::string(bytes.c_str() + start + offset) : "";
    };
    for (std::uint32_t i = 0; i < header.libraries; ++i) {
        CacheEntry entry;
        std::memcpy(&entry, bytes.data() + list + i * sizeof entry, sizeof entry);
        if (entry.flags == x86_64_library && entry.capabilities == 0)
            cached_.emplace(text_at(entry.name), text_at(entry.path));
    }
}

std::string LibrarySearch::find(const std::string& name, const Image& asking) const {
    if (name.find('/') != std::string::npos) return ::access(name.c_str(), R_OK) == 0 ? name : "";
    const std::vector<std::string> own = parts_of(asking.run_path());
    const bool own_first = asking.run_path_first();
    for (const auto* const folders :
         {own_first ? &own : &folders_of_user_, own_first ? &folders_of_user_ : &own})
        if (std::string found = in_folders(*folders, name); !found.empty()) return found;
    if (const auto at = cached_.find(name);
        at != cached_.end() && ::access(at->second.c_str(), R_OK) == 0)
        return at->second;
    return in_folders({"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
                       "/lib", "/usr/lib"},
                      name);
}

}  // namespace hiroba::tools
