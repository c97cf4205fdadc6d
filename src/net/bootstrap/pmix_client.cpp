// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/pmix_client.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstring>
#include <string>
#include <utility>

namespace hiroba::net {

namespace {

// --- the binary interface of PMIx --------------------------------------------------------------

constexpr std::uint32_t rank_wildcard = ~std::uint32_t{0} - 1;
constexpr std::uint16_t type_uint32 = 14, type_byte_object = 27;
constexpr std::uint8_t scope_global = 3;
constexpr const char* job_size_key = "pmix.job.size";
constexpr const char* card_key = "hiroba.card";

struct Process {
    char name_space[256];
    std::uint32_t rank;
};

struct Value {
    std::uint16_t type;
    union {
        std::uint32_t number;
        struct {
            char* bytes;
            std::size_t size;
        } object;
        /// The standard's union has members larger than these.
        std::byte room[64];
    } data;
};

using Init = int (*)(Process*, void*, std::size_t);
using Finalize = int (*)(const void*, std::size_t);
using Put = int (*)(std::uint8_t, const char*, Value*);
using Commit = int (*)();
using Fence = int (*)(const Process*, std::size_t, const void*, std::size_t);
using Get = int (*)(const Process*, const char*, const void*, std::size_t, Value**);
using ErrorText = const char* (*)(int);

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

}  // namespace

struct PmixClient::Library {
    Process self{};
    Finalize finalize = nullptr;
    Put put = nullptr;
    Commit commit = nullptr;
    Fence fence = nullptr;
    Get get = nullptr;
    ErrorText error_text = nullptr;

    std::string text_of(int status) const {
        return error_text != nullptr ? error_text(status) : "error " + std::to_string(status);
    }
};

bool is_pmix_process(GetVariable get) {
    return get("PMIX_NAMESPACE") != nullptr && get("PMIX_RANK") != nullptr;
}

PmixClient::PmixClient(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Result<std::unique_ptr<PmixClient>> PmixClient::connect() {
    // Never unloaded: the library keeps a thread.
    void* const handle = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return unfit(std::string("this process was started with PMIx, whose library cannot be ") +
                     "loaded: " + ::dlerror() + ". Install it (Debian: libpmix2)");
    auto library = std::make_unique<Library>();
    Init init = nullptr;
    const auto find = [handle](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
        return function != nullptr;
    };
    if (!find(init, "PMIx_Init") || !find(library->finalize, "PMIx_Finalize") ||
        !find(library->put, "PMIx_Put") || !find(library->commit, "PMIx_Commit") ||
        !find(library->fence, "PMIx_Fence") || !find(library->get, "PMIx_Get"))
        return unfit(std::string("libpmix.so.2 lacks a function: ") + ::dlerror() +
                     ". Install version 3 or later");
    find(library->error_text, "PMIx_Error_string");

    Process& self = library->self;
    if (const int status = init(&self, nullptr, 0); status != 0)
        return unfit("the launcher's PMIx daemon does not answer: " + library->text_of(status) +
                     ". Start with mpirun, or with srun --mpi=pmix");
    std::unique_ptr<PmixClient> client(new PmixClient(std::move(library)));
    client->rank_ = client->library_->self.rank;
    Process job = client->library_->self;
    job.rank = rank_wildcard;
    Value* size = nullptr;
    const int status = client->library_->get(&job, job_size_key, nullptr, 0, &size);
    if (status != 0 || size->type != type_uint32)
        return unfit("PMIx does not say how many processes the job has: " +
                     client->library_->text_of(status));
    client->processes_ = size->data.number;
    return client;
}

PmixClient::~PmixClient() { library_->finalize(nullptr, 0); }

Result<std::vector<std::vector<std::byte>>> PmixClient::exchange(Bytes mine) {
    Value value{};
    value.type = type_byte_object;
    std::vector<char> copy(mine.size());
    std::memcpy(copy.data(), mine.data(), mine.size());
    value.data.object = {copy.data(), copy.size()};
    if (const int status = library_->put(scope_global, card_key, &value); status != 0)
        return unfit("PMIx_Put: " + library_->text_of(status));
    if (const int status = library_->commit(); status != 0)
        return unfit("PMIx_Commit: " + library_->text_of(status));
    if (const auto met = barrier(); !met) return met.error();
    std::vector<std::vector<std::byte>> all(processes_);
    for (std::uint32_t rank = 0; rank < processes_; ++rank) {
        Process from = library_->self;
        from.rank = rank;
        Value* given = nullptr;
        const int status = library_->get(&from, card_key, nullptr, 0, &given);
        if (status != 0 || given->type != type_byte_object)
            return unfit("process " + std::to_string(rank) + " of the job gave no card: " +
                         library_->text_of(status) + ". Start the same program in all " +
                         std::to_string(processes_) + " of them");
        const auto* const bytes = reinterpret_cast<const std::byte*>(given->data.object.bytes);
        all[rank].assign(bytes, bytes + given->data.object.size);
    }
    return all;
}

Result<void> PmixClient::barrier() {
    if (const int status = library_->fence(nullptr, 0, nullptr, 0); status != 0)
        return unfit("PMIx_Fence: " + library_->text_of(status));
    return {};
}

}  // namespace hiroba::net
