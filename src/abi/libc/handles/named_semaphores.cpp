// SPDX-License-Identifier: BSD-3-Clause
// Role: sem_open() and its kin for the program. libc maps a file, which is one host's; the program
// gets a semaphore in global memory, which the job knows by its name and works as any other.
// Invariant: a name is the job's, and ends with it. One that another process has made is refused:
// that process would never see what the job does.
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "abi/libc/handles/kept_objects.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(sem_open);
HIROBA_REAL(sem_close);
HIROBA_REAL(sem_unlink);

namespace hiroba::abi {

/// In global memory.
struct NamedSemaphore {
    static constexpr std::size_t name_bytes = NAME_MAX + 1;
    sem_t semaphore;
    NamedSemaphore* next;
    unsigned uses;     ///< sem_open() less sem_close()
    bool is_unlinked;  ///< its name may be another's by now
    char name[name_bytes];
};

namespace {

const char* without_slashes(const char* name) noexcept {
    while (*name == '/') ++name;
    return name;
}

/// 0 or an error number, as glibc.
int fault_of(const char* name) noexcept {
    if (*name == '\0' || strchr(name, '/') != nullptr) return EINVAL;
    return strlen(name) + strlen("sem.") > NAME_MAX ? ENAMETOOLONG : 0;
}

bool exists_outside(const char* name) noexcept {
    char path[NAME_MAX + 32] = "/dev/shm/sem.";
    strcat(path, name);
    return access(path, F_OK) == 0;
}

NamedSemaphore* find(const KeptObjectsGuard& objects, const char* name) noexcept {
    for (NamedSemaphore* each = objects->semaphores; each != nullptr; each = each->next)
        if (!each->is_unlinked && strcmp(each->name, name) == 0) return each;
    return nullptr;
}

/// Takes it out of the list once nobody can come by it any more.
void drop_if_unused(const KeptObjectsGuard& objects, NamedSemaphore* unused) noexcept {
    if (!unused->is_unlinked || unused->uses != 0) return;
    NamedSemaphore** link = &objects->semaphores;
    while (*link != unused) link = &(*link)->next;
    *link = unused->next;
    sem_destroy(&unused->semaphore);
    give_back(unused);
}

/// nullptr and errno.
NamedSemaphore* make(const KeptObjectsGuard& objects, const char* name, unsigned value) noexcept {
    if (value > SEM_VALUE_MAX) {
        errno = EINVAL;
        return nullptr;
    }
    void* const room = allocate_for_program(sizeof(NamedSemaphore), 64, true);
    if (room == nullptr) return nullptr;
    auto* const made = static_cast<NamedSemaphore*>(room);
    strcpy(made->name, name);
    made->next = objects->semaphores;
    objects->semaphores = made;
    sem_init(&made->semaphore, 0, value);
    return made;
}

sem_t* open(const char* slashed, int flags, unsigned value) noexcept {
    const char* const name = without_slashes(slashed);
    errno = fault_of(name);
    if (errno != 0) return SEM_FAILED;
    const bool creates = (flags & O_CREAT) != 0, must_create = creates && (flags & O_EXCL) != 0;
    const KeptObjectsGuard objects;
    NamedSemaphore* found = find(objects, name);
    const bool outside = found == nullptr && exists_outside(name);
    if (must_create && (found != nullptr || outside)) {
        errno = EEXIST;
        return SEM_FAILED;
    }
    if (outside) {
        die(exit_environment,
            "sem_open(\"%s\"): another process has made this semaphore, and threads on other hosts "
            "cannot use it. Remove it (/dev/shm/sem.%s) if it was left behind, or run on one node "
            "(-n 1)",
            slashed, name);
    }
    if (found == nullptr && !creates) errno = ENOENT;
    if (found == nullptr && creates) found = make(objects, name, value);
    if (found == nullptr) return SEM_FAILED;
    ++found->uses;
    return &found->semaphore;
}

int close(sem_t* semaphore) noexcept {
    const KeptObjectsGuard objects;
    for (NamedSemaphore* each = objects->semaphores; each != nullptr; each = each->next) {
        if (&each->semaphore != semaphore || each->uses == 0) continue;
        --each->uses;
        drop_if_unused(objects, each);
        return 0;
    }
    errno = EINVAL;
    return -1;
}

/// False: the job has none of this name.
bool unlink_name(const char* name) noexcept {
    const KeptObjectsGuard objects;
    NamedSemaphore* const found = find(objects, name);
    if (found == nullptr) return false;
    found->is_unlinked = true;
    drop_if_unused(objects, found);
    return true;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

sem_t* sem_open(const char* name, int flags, ...) noexcept {
    mode_t mode = 0;
    unsigned value = 0;
    if ((flags & O_CREAT) != 0) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        value = va_arg(list, unsigned);
        va_end(list);
    }
    if (!HIROBA_CALL_OF_PROGRAM()) return real_sem_open(name, flags, mode, value);
    return open(name, flags, value);
}

int sem_close(sem_t* semaphore) noexcept {
    return table_of(semaphore) == nullptr ? real_sem_close(semaphore) : close(semaphore);
}

int sem_unlink(const char* name) noexcept {
    if (HIROBA_CALL_OF_PROGRAM() && unlink_name(without_slashes(name))) return 0;
    return real_sem_unlink(name);
}

}  // extern "C"
