// SPDX-License-Identifier: BSD-3-Clause
// Role: sets of processors as text ("0,2-5"), as they travel between launchers and agents.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>

namespace hiroba {

/// The processors of `set` in rising order, as "0,2-5"; empty for none.
std::string cpu_list(const cpu_set_t& set);

/// The reverse; nothing when the text is no such list or names a processor beyond CPU_SETSIZE.
std::optional<cpu_set_t> parse_cpu_list(std::string_view text);

/// The processors that this process may run on.
cpu_set_t own_cpus();

}  // namespace hiroba
