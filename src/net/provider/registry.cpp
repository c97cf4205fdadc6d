// SPDX-License-Identifier: BSD-3-Clause
// Role: see registry.hpp. A new provider is one line in the table.
#include "net/provider/registry.hpp"

#include <array>
#include <string>
#include <utility>

#include "net/provider/shm/shm_provider.hpp"

namespace hiroba::net {
namespace {

using Maker = Result<std::unique_ptr<Provider>> (*)(ProviderSetup);

constexpr std::array<const char*, 1> names{"shm"};
constexpr std::array<Maker, names.size()> makers{shm::make_shm_provider};

}  // namespace

std::span<const char* const> provider_names() noexcept { return names; }

Result<std::unique_ptr<Provider>> make_provider(std::string_view name, ProviderSetup setup) {
    std::string known;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return makers[i](std::move(setup));
        known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    return Error{ErrorKind::usage,
                 "HIROBA_PROVIDER=" + std::string(name) + ": no such provider; there is " + known};
}

}  // namespace hiroba::net
