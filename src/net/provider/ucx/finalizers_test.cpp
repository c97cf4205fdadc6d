// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <link.h>

#include <cstddef>
#include <set>
#include <string>

#include "net/provider/ucx/make_ucx_provider.hpp"

namespace hiroba::net::ucx {
namespace {

/// Names of the loaded objects whose finalizers the loader would run.
std::set<std::string> finalized_objects() {
    std::set<std::string> names;
    const auto add = [](dl_phdr_info* info, std::size_t, void* found) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
            const auto* entry =
                reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            for (; entry->d_tag != DT_NULL; ++entry) {
                if (entry->d_tag == DT_FINI_ARRAYSZ && entry->d_un.d_val != 0)
                    static_cast<std::set<std::string>*>(found)->insert(info->dlpi_name);
            }
        }
        return 0;
    };
    ::dl_iterate_phdr(add, &names);
    return names;
}

TEST(UcxLibraries, are_not_finalized_while_nodes_still_use_them) {
    const std::set<std::string> before = finalized_objects();
    if (const auto found = describe_library(); !found) GTEST_SKIP() << found.error().text;
    EXPECT_EQ(finalized_objects(), before);
}

}  // namespace
}  // namespace hiroba::net::ucx
