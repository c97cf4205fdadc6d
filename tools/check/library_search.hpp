// SPDX-License-Identifier: BSD-3-Clause
// Role: finds a library as the loader does: the asking object's path, LD_LIBRARY_PATH, the cache,
// the system's folders.
// Invariant: reads names and the cache; opens no library.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/check/image.hpp"

namespace hiroba::tools {

class LibrarySearch {
public:
    /// Reads /etc/ld.so.cache (another file for tests) and LD_LIBRARY_PATH.
    explicit LibrarySearch(const std::string& cache = "/etc/ld.so.cache");

    /// Where the library is that `asking` needs by `name`; empty: nowhere.
    std::string find(const std::string& name, const Image& asking) const;

private:
    std::map<std::string, std::string> cached_;
    std::vector<std::string> folders_of_user_;
};

}  // namespace hiroba::tools
