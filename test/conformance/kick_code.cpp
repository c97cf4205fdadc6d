// SPDX-License-Identifier: BSD-3-Clause
// Role: kicks as a compiler sees them; check_kick_code.sh looks at the instructions.
#include "hiroba/kick.hpp"
#include "net/kick/kick.hpp"

namespace hiroba::net::kick {

#define HIROBA_MAPPED_KICK(Name, Type)                                    \
    [[gnu::visibility("default"), gnu::noinline]] void mapped_##Name(     \
        const MappedKick<Type>& kick, std::uint32_t offset, Type value) { \
        kick.store(offset, value);                                        \
    }                                                                     \
    [[gnu::visibility("default"), gnu::noinline]] void any_##Name(        \
        Kick<Type>& kick, std::uint32_t offset, Type value) {             \
        kick.store(offset, value);                                        \
    }

HIROBA_MAPPED_KICK(u8, std::uint8_t)
HIROBA_MAPPED_KICK(u16, std::uint16_t)
HIROBA_MAPPED_KICK(u32, std::uint32_t)
HIROBA_MAPPED_KICK(u64, std::uint64_t)

}  // namespace hiroba::net::kick

namespace hiroba::kick {

#define HIROBA_FACE_KICK(Name, Type)                                \
    [[gnu::visibility("default"), gnu::noinline]] void face_##Name( \
        Kick<Type>& kick, std::uint32_t offset, Type value) {       \
        kick.store(offset, value);                                  \
    }

HIROBA_FACE_KICK(u8, std::uint8_t)
HIROBA_FACE_KICK(u16, std::uint16_t)
HIROBA_FACE_KICK(u32, std::uint32_t)
HIROBA_FACE_KICK(u64, std::uint64_t)

}  // namespace hiroba::kick
