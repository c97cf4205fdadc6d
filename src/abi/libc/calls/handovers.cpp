// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/handovers.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

Handover by_number(long number) noexcept {
    switch (number) {
        case SYS_read:
        case SYS_readv:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg: return Handover::is_told;
        case SYS_write:
        case SYS_writev:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_shutdown:
        case SYS_close: return Handover::tells;
        default: return Handover::none;
    }
}

/// Files on disks and terminals are none. Event counters and their kin have no type at all. Of
/// another node's descriptor it is not asked: the exchange costs more than a flush.
bool is_channel(int fd) noexcept {
    if (foreign_owner(fd)) return true;
    struct stat status;
    if (dsm::kernel_call(SYS_fstat, fd, &status) != 0) return false;
    const auto type = status.st_mode & S_IFMT;
    return type == S_IFIFO || type == S_IFSOCK || type == 0;
}

}  // namespace

Handover handover_by(long number, const CallArguments& arguments) noexcept {
    const Handover kind = by_number(number);
    const auto fd = static_cast<int>(arguments.word[0]);
    if (kind == Handover::none || fd < 0 || is_standard(fd)) return Handover::none;
    return is_channel(fd) ? kind : Handover::none;
}

}  // namespace hiroba::abi
