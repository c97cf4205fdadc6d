// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the shared memory: converts calls to hiroba/dsm.hpp's. A hiroba_dsm is a
// SharedMemory. Calls that synchronize do nothing behind the call they make, so that the program's
// place is the one that the shared memory sees and counts by.
#include "hiroba/dsm.hpp"

#include <cstddef>
#include <string>

#include "abi/c/last_error.hpp"
#include "hiroba/hiroba.h"

namespace {

using hiroba::abi::failed;

hiroba::SharedMemory& of(hiroba_dsm* dsm) noexcept {
    return *reinterpret_cast<hiroba::SharedMemory*>(dsm);
}
const hiroba::SharedMemory& of(const hiroba_dsm* dsm) noexcept {
    return *reinterpret_cast<const hiroba::SharedMemory*>(dsm);
}

std::uint64_t changed(hiroba::AtomicWord word, int operation, std::uint64_t operand,
                      std::uint64_t expected) noexcept {
    switch (operation) {
        case HIROBA_ADD: return word.fetch_add(operand);
        case HIROBA_AND: return word.fetch_and(operand);
        case HIROBA_OR: return word.fetch_or(operand);
        case HIROBA_XOR: return word.fetch_xor(operand);
        case HIROBA_SWAP: return word.exchange(operand);
        default: break;
    }
    word.compare_exchange(expected, operand);
    return expected;
}

}  // namespace

extern "C" {

int hiroba_dsm_open(hiroba_dsm** dsm) {
    std::string why;
    auto opened = hiroba::SharedMemory::open(&why);
    if (opened == nullptr) return failed(HIROBA_NO_JOB, why);
    *dsm = reinterpret_cast<hiroba_dsm*>(opened.release());
    return HIROBA_OK;
}

void hiroba_dsm_close(hiroba_dsm* dsm) { delete reinterpret_cast<hiroba::SharedMemory*>(dsm); }
uint32_t hiroba_dsm_rank(const hiroba_dsm* dsm) { return of(dsm).node(); }
uint32_t hiroba_dsm_ranks(const hiroba_dsm* dsm) { return of(dsm).nodes(); }

int hiroba_dsm_allocate(hiroba_dsm* dsm, size_t bytes, size_t alignment, void** memory) {
    if (alignment == 0) alignment = 64;
    if ((alignment & (alignment - 1)) != 0)
        return failed(HIROBA_REFUSED, "hiroba_dsm_allocate(): the alignment " +
                                          std::to_string(alignment) + " is no power of two");
    void* const made = of(dsm).allocate(bytes, alignment);
    if (made == nullptr)
        return failed(HIROBA_NO_MEMORY, "hiroba_dsm_allocate(): no room for " +
                                            std::to_string(bytes) +
                                            " bytes in this rank's arena (HIROBA_HEAP)");
    *memory = made;
    return HIROBA_OK;
}

int hiroba_dsm_allocate_together(hiroba_dsm* dsm, size_t bytes, void** memory) {
    void* const made = of(dsm).allocate_together<std::byte>(bytes);
    if (made == nullptr)
        return failed(HIROBA_NO_MEMORY,
                      "hiroba_dsm_allocate_together(): no room in rank 0's arena (HIROBA_HEAP)");
    *memory = made;
    return HIROBA_OK;
}

void hiroba_dsm_free(hiroba_dsm* dsm, void* memory) { of(dsm).deallocate(memory); }
void hiroba_dsm_barrier(hiroba_dsm* dsm) { of(dsm).barrier(); }
uint64_t hiroba_dsm_broadcast(hiroba_dsm* dsm, uint64_t value, uint32_t from) {
    return of(dsm).broadcast(value, from);
}
void hiroba_dsm_all_gather(hiroba_dsm* dsm, uint64_t value, uint64_t* all) {
    of(dsm).all_gather(value, all);
}
void hiroba_dsm_flush(hiroba_dsm* dsm) { of(dsm).flush(); }
void hiroba_dsm_lock(hiroba_dsm* dsm, uint64_t key) { of(dsm).lock(key); }
void hiroba_dsm_unlock(hiroba_dsm* dsm, uint64_t key) { of(dsm).unlock(key); }
int hiroba_dsm_try_lock(hiroba_dsm* dsm, uint64_t key) {
    return of(dsm).try_lock(key) ? HIROBA_OK : HIROBA_BUSY;
}

int hiroba_dsm_atomic64(hiroba_dsm* dsm, uint64_t* word, int operation, uint64_t operand,
                        uint64_t expected, uint64_t* old) {
    if (operation < HIROBA_ADD || operation > HIROBA_COMPARE_SWAP)
        return failed(HIROBA_REFUSED, "hiroba_dsm_atomic64(): operation " +
                                          std::to_string(operation) +
                                          "; there are HIROBA_ADD to HIROBA_COMPARE_SWAP");
    if (reinterpret_cast<std::uintptr_t>(word) % sizeof *word != 0)
        return failed(HIROBA_REFUSED, "hiroba_dsm_atomic64(): the word is not aligned to 8 bytes");
    const std::uint64_t found = changed({of(dsm), word}, operation, operand, expected);
    if (old != nullptr) *old = found;
    return HIROBA_OK;
}

}  // extern "C"
