// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes POSIX asynchronous input and output. libc serves it by threads of its own, which
// know nothing of pages that are elsewhere; so each request is carried out at once, by the caller,
// and is complete when the function returns, which POSIX allows. Invariant: error and result stand
// where libc keeps them in the aiocb; so aio_error, aio_return, aio_suspend and aio_cancel are
// libc's. What may wait without end (a pipe) is refused.
#include <aio.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/notices.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(aio_read);
HIROBA_REAL(aio_write);
HIROBA_REAL(aio_fsync);
HIROBA_REAL(lio_listio);

namespace hiroba::abi {
namespace {

int refuse(int descriptor) noexcept {
    static constinit std::atomic<bool> said{false};
    if (!said.exchange(true, std::memory_order_relaxed)) {
        say("aio on descriptor %d refused: it has no positions, so the request might wait without "
            "end; use read and write in a thread, or run on one node (-n 1)",
            descriptor);
    }
    errno = ENOSYS;
    return -1;
}

bool has_positions(int descriptor) noexcept {
    const long at = perform_system_call(SYS_lseek, CallArguments{{descriptor, 0, SEEK_CUR}});
    return at != -ESPIPE;
}

long perform(const aiocb& request, long number) noexcept {
    long result;
    do {
        result = perform_system_call(
            number, CallArguments{{request.aio_fildes,
                                   dsm::kernel::as_word(const_cast<void*>(request.aio_buf)),
                                   static_cast<long>(request.aio_nbytes), request.aio_offset}});
    } while (result == -EINTR);
    return result;
}

void finish(aiocb& request, long result) noexcept {
    const bool failed = dsm::kernel_failed(result);
    request.__return_value = failed ? -1 : result;
    request.__error_code = failed ? static_cast<int>(-result) : 0;
}

int submit(aiocb* request, long number) noexcept {
    if (!has_positions(request->aio_fildes)) return refuse(request->aio_fildes);
    finish(*request, perform(*request, number));
    tell_program(request->aio_sigevent, SI_ASYNCIO);
    return 0;
}

int synchronize(int operation, aiocb* request) noexcept {
    if (operation != O_SYNC && operation != O_DSYNC) {
        errno = EINVAL;
        return -1;
    }
    const long number = operation == O_SYNC ? SYS_fsync : SYS_fdatasync;
    finish(*request, perform_system_call(number, CallArguments{{request->aio_fildes}}));
    tell_program(request->aio_sigevent, SI_ASYNCIO);
    return 0;
}

int submit_list(int mode, aiocb* const* list, int count, sigevent* event) noexcept {
    if (mode != LIO_WAIT && mode != LIO_NOWAIT) {
        errno = EINVAL;
        return -1;
    }
    bool failed = false;
    for (int i = 0; i < count; ++i) {
        if (list[i] == nullptr || list[i]->aio_lio_opcode == LIO_NOP) continue;
        const bool reads = list[i]->aio_lio_opcode == LIO_READ;
        if (submit(list[i], reads ? SYS_pread64 : SYS_pwrite64) != 0) return -1;
        failed |= list[i]->__error_code != 0;
    }
    if (mode == LIO_NOWAIT && event != nullptr) tell_program(*event, SI_ASYNCIO);
    if (mode == LIO_NOWAIT || !failed) return 0;
    errno = EIO;
    return -1;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int aio_read(aiocb* request) noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? submit(request, SYS_pread64) : real_aio_read(request);
}
int aio_write(aiocb* request) noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? submit(request, SYS_pwrite64) : real_aio_write(request);
}
int aio_fsync(int operation, aiocb* request) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_aio_fsync(operation, request);
    return synchronize(operation, request);
}
int lio_listio(int mode, aiocb* const list[], int count, sigevent* event) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_lio_listio(mode, list, count, event);
    return submit_list(mode, list, count, event);
}

// On machines of 64 bits the structures are the same.
static_assert(sizeof(aiocb) == sizeof(aiocb64));
[[gnu::alias("aio_read")]] int aio_read64(aiocb64*) noexcept;
[[gnu::alias("aio_write")]] int aio_write64(aiocb64*) noexcept;
[[gnu::alias("aio_fsync")]] int aio_fsync64(int, aiocb64*) noexcept;
[[gnu::alias("lio_listio")]] int lio_listio64(int, aiocb64* const[], int, sigevent*) noexcept;

}  // extern "C"
