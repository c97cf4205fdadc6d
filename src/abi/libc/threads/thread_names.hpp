// SPDX-License-Identifier: BSD-3-Clause
// Role: the kernel's name of a thread, which its own node alone can read and write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::abi {

struct CallArguments;

/// What another node is asked, numbered behind ThreadCall: the words are a pthread_t and whether
/// the name is to be changed; the data the name.
enum class NameCall : std::int64_t { name = (1 << 22) + 16 };
inline constexpr std::size_t thread_name_bytes = 16;

/// For another node. @return 0 or a negated error number
std::int64_t name_thread_here(const CallArguments& words, std::byte* name) noexcept;

}  // namespace hiroba::abi
