// SPDX-License-Identifier: BSD-3-Clause
// The header alone, first, in C++; its types are the interface's.
#include <acp.h>

#include <type_traits>

static_assert(std::is_same_v<acp_ga_t, uint64_t> && std::is_same_v<acp_atkey_t, uint64_t>);
static_assert(std::is_same_v<acp_handle_t, int64_t>);
static_assert(static_cast<acp_handle_t>(ACP_HANDLE_ALL) == -1);
static_assert(static_cast<acp_handle_t>(ACP_HANDLE_CONT) == -2 && ACP_HANDLE_NULL == 0);

int main(int argc, char** argv) {
    return acp_init(&argc, &argv) == 0 && acp_procs() == 1 ? acp_finalize() : 1;
}
