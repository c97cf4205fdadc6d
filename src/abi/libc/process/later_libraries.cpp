// SPDX-License-Identifier: BSD-3-Clause
// Role: node 0's opening, the record of it, and its repetition.
// Invariant: between mapping and initializers the loader allocates, at the latest for the list of
// initializers itself, by malloc, which is ours: there the libraries are adopted (node 0), or their
// initializers are held back (others).
//
// The others adopt only after the loader is through: their relocation writes what the library had
// in the beginning, and must not reach the bytes node 0 has made of it since.
#include "abi/libc/process/later_libraries.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "abi/global_objects.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/process/stack_end.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "omp/process/later_objects.hpp"
#include "omp/process/threads_apart.hpp"
#include "omp/team/told_apart.hpp"

namespace hiroba::abi {

/// The properties of a library that must be equal on all nodes.
struct OpenedObject {
    std::uintptr_t bias = 0;
    std::size_t tls_module = 0;
    omp::BuildId build_id;
};

struct LibraryRecord {
    LibraryRecord* next = nullptr;
    void* handle = nullptr;  ///< node 0's; null while initializers run
    int mode = 0;
    std::uintptr_t top = 0;  ///< of the free place when it was opened
    std::size_t count = 0;
    char path[PATH_MAX] = {};
    OpenedObject objects[];
};

namespace {

using Objects = std::vector<omp::LoadedObject>;
using OpenFunction = void* (*)(const char*, int);

/// A dlopen() under way on this thread.
struct Opening {
    Opening* outer;
    bool repeats;  ///< what node 0 did
    int mode;
    std::vector<std::uintptr_t> known;
    std::uintptr_t top = 0;
    bool by_path = false;
    LibraryRecord* record = nullptr;  ///< node 0: once adopted
    bool looking = false;
};

constinit thread_local Opening* opening [[gnu::tls_model("initial-exec")]] = nullptr;

struct Handles {
    const LibraryRecord* record;  ///< names node 0's, once its initializers have run
    void* own;
};

/// One thread at a time opens; initializers may open more, on the same thread.
std::recursive_mutex& only_one() {
    static std::recursive_mutex mutex;
    return mutex;
}
constinit LibraryRecord* first_record = nullptr;           ///< node 0
constinit LibraryRecord* last_record = nullptr;            ///< node 0
constinit const LibraryRecord* repeated_to = nullptr;      ///< others
constinit Handles handles[dsm::AddressMap::images_max]{};  ///< others
constinit std::size_t handle_count = 0;

void* real_open(const char* file, int mode) noexcept {
    static const auto open = reinterpret_cast<OpenFunction>(find_real("dlopen"));
    return open(file, mode);
}

template <class T>
void require(const Result<T>& result, const char* path) noexcept {
    if (!result) die(exit_environment, "dlopen of %s: %s", path, result.error().text.c_str());
}

std::string absolute(const std::string& path) {
    if (path.starts_with('/')) return path;
    char directory[PATH_MAX];
    if (getcwd(directory, sizeof directory) == nullptr) return path;
    return std::string(directory) + '/' + path;
}

/// Where the loader would find `file` on the search path of the object that `caller` lies in: it
/// takes the path of dlopen()'s caller, and that is this library now. Not found there, a name
/// is left to it (its cache).
std::string find_for(const void* caller, const char* file) {
    Dl_info info;
    link_map* object = nullptr;
    Dl_serinfo sizes;
    if (strchr(file, '/') != nullptr ||
        dladdr1(caller, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
        dlinfo(object, RTLD_DI_SERINFOSIZE, &sizes) != 0)
        return file;
    const std::unique_ptr<char[]> room{new char[sizes.dls_size]};
    auto* const paths = new (room.get()) Dl_serinfo(sizes);
    if (dlinfo(object, RTLD_DI_SERINFO, paths) != 0) return file;
    for (unsigned i = 0; i < paths->dls_cnt; ++i) {
        std::string path = std::string(paths->dls_serpath[i].dls_name) + '/' + file;
        if (dsm::kernel_call(SYS_faccessat, AT_FDCWD, path.c_str(), R_OK) == 0) return path;
    }
    return file;
}

LibraryRecord* write_down(const Opening& now, const Objects& objects) noexcept {
    const std::size_t bytes = sizeof(LibraryRecord) + objects.size() * sizeof(OpenedObject);
    bool zeroed = false;
    void* const room = world()->heap->allocate(bytes, 64, &zeroed);
    if (room == nullptr)
        die(exit_environment, "no room for %lu bytes about a library: set HIROBA_HEAP", bytes);
    auto* const record = new (room) LibraryRecord;
    record->mode = now.mode;
    // What the loader searched by, without a path, was mapped first and is gone.
    record->top = omp::top_of_room(now.by_path ? now.top : 0, objects);
    record->count = objects.size();
    strncpy(record->path, absolute(objects.front().path).c_str(), sizeof record->path - 1);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        record->objects[i] = {objects[i].bias, objects[i].tls_module, objects[i].build_id};
    }
    (last_record == nullptr ? first_record : last_record->next) = record;
    last_record = record;
    return record;
}

void adopt(const Objects& objects, const char* path) noexcept {
    if (omp::tell_threads_apart(objects)) omp::program_tells_threads_apart.store(true);
    require(adopt_libraries(*world(), objects), path);
}

/// Node 0. From here on the other nodes will have them, too.
void adopt_here(Opening& now, const Objects& objects) noexcept {
    omp::LibraryRange& place = world()->library_range;
    place.stop_steering();
    place.free_above();
    adopt(objects, objects.front().path.c_str());
    place.close();
    now.record = write_down(now, objects);
    process_state_changed("dlopen()");
}

/// @param mapped  dlopen() has returned: adopt even if a library it needs was not found
void look_at_new(Opening& now, bool mapped) noexcept {
    if (now.record != nullptr) return;
    const Objects objects = omp::objects_since(now.known);
    if (objects.empty()) return;
    if (now.repeats) {
        for (const omp::LoadedObject& object : objects)
            if (object.is_global()) omp::hold_back_initializers(object);
    } else if (mapped || omp::needs_are_met(objects)) {
        adopt_here(now, objects);
    }
}

/// libc's dlopen(), with loader_allocates() looking on.
void* open_watched(Opening& now, const char* file) noexcept {
    now.known = omp::loaded_biases();
    now.outer = opening;
    opening = &now;
    const StackOfLoader stack;
    void* const handle = real_open(file, now.mode);
    opening = now.outer;
    return handle;
}

/// Node 0: dlopen() failed after the library was adopted (a symbol it lacks). Forgets it; its
/// address range is not used again.
void strike_out(const LibraryRecord* record) noexcept {
    LibraryRecord* before = nullptr;
    for (LibraryRecord* each = first_record; each != record; each = each->next) before = each;
    (before == nullptr ? first_record : before->next) = record->next;
    if (last_record == record) last_record = before;
}

void require_equal(const LibraryRecord& record, const Objects& objects) noexcept {
    if (objects.size() != record.count) {
        die(exit_environment, "dlopen of %s brought %lu libraries on node 0 and %lu here",
            record.path, record.count, objects.size());
    }
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const OpenedObject& there = record.objects[i];
        const omp::LoadedObject& here = objects[i];
        const char* const path = here.path.c_str();
        if (here.bias != there.bias)
            die(exit_environment,
                "dlopen of %s: %s lies at 0x%lx on node 0 and at 0x%lx here. Link the program with "
                "it, or name it in LD_PRELOAD",
                record.path, path, there.bias, here.bias);
        if (here.build_id != there.build_id)
            die(exit_environment, "%s is another build than node 0's", path);
        if (here.tls_module != there.tls_module)
            die(exit_environment, "%s is thread-local module %lu on node 0 and %lu here", path,
                there.tls_module, here.tls_module);
        if (here.is_global() && !omp::has_no_initializers(here))
            die(exit_environment,
                "the loader of this host ran the initializers of %s, which node 0 has run already. "
                "Link the program with it, or name it in LD_PRELOAD",
                path);
    }
}

void repeat(const LibraryRecord& record) noexcept {
    // The loader's calls of the kernel cannot fault global memory in.
    const std::string path = record.path;
    omp::LibraryRange& place = world()->library_range;
    require(place.open(record.top), path.c_str());
    Opening now{.outer = nullptr, .repeats = true, .mode = record.mode, .known = {}};
    void* const handle = open_watched(now, path.c_str());
    if (handle == nullptr)
        die(exit_environment, "node 0 has opened %s, which fails here: %s", path.c_str(),
            dlerror());
    place.stop_steering();
    place.free_above();
    const Objects objects = omp::objects_since(now.known);
    require_equal(record, objects);
    adopt(objects, path.c_str());
    place.close();
    if (handle_count < std::size(handles)) handles[handle_count++] = {&record, handle};
}

}  // namespace

Result<void*> open_library(const char* file, int mode, const void* caller) noexcept {
    const std::scoped_lock guard{only_one()};
    omp::LibraryRange& place = world()->library_range;
    if (place.range().bytes == 0)
        return Error{ErrorKind::environment,
                     "no address space was to be had for it at the start: "
                     "raise ulimit -v"};
    const std::string name = find_for(caller, file);
    Opening now{.outer = nullptr, .repeats = false, .mode = mode | RTLD_NODELETE, .known = {}};
    now.by_path = name.find('/') != std::string::npos;
    if (!place.is_open()) {
        const RuntimeScope here;
        if (auto opened = place.open(place.top()); !opened) return opened.error();
    }
    now.top = place.top();
    void* const handle = open_watched(now, name.c_str());

    // Nothing here may ask the loader when it has failed: it would forget what dlerror() says.
    on_runtime_stack([&] {
        if (handle == nullptr && now.record != nullptr) strike_out(now.record);
        if (handle != nullptr) look_at_new(now, true);
        place.close();
    });
    if (handle != nullptr && now.record != nullptr) now.record->handle = handle;
    return handle;
}

void loader_allocates() noexcept {
    Opening* const now = opening;
    if (now == nullptr || now->looking) return;
    now->looking = true;
    const int errno_before = errno;
    on_runtime_stack([now] { look_at_new(*now, false); });
    errno = errno_before;
    now->looking = false;
}

const LibraryRecord* opened_libraries() noexcept { return first_record; }

void open_as_on_node_0(const LibraryRecord* first) noexcept {
    for (;;) {
        const LibraryRecord* const next = repeated_to == nullptr ? first : repeated_to->next;
        if (next == nullptr) return;
        repeat(*next);
        repeated_to = next;
    }
}

void* own_handle(void* handle) noexcept {
    for (std::size_t i = 0; i < handle_count; ++i)
        if (handle != nullptr && handles[i].record->handle == handle) return handles[i].own;
    return handle;
}

}  // namespace hiroba::abi
