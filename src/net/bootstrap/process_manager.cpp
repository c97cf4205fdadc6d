// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/process_manager.hpp"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "net/bootstrap/pmi_client.hpp"
#include "net/bootstrap/pmix_client.hpp"

namespace hiroba::net {

namespace {

/// The number in a variable; `otherwise` where there is none.
std::uint64_t number_of(const char* text, std::uint64_t otherwise) {
    std::uint64_t value = 0;
    if (text == nullptr || std::from_chars(text, text + std::strlen(text), value).ec != std::errc())
        return otherwise;
    return value;
}

template <class Client>
Result<std::unique_ptr<ProcessManager>> connected() {
    auto client = Client::connect();
    if (!client) return client.error();
    return std::unique_ptr<ProcessManager>(std::move(*client));
}

}  // namespace

Result<std::unique_ptr<ProcessManager>> ProcessManager::connect() {
    const GetVariable get = [](const char* name) -> const char* { return ::getenv(name); };
    if (is_pmix_process(get)) return connected<PmixClient>();
    if (is_pmi_process(get)) return connected<PmiClient>();
    return std::unique_ptr<ProcessManager>();
}

bool is_first_of_launcher(GetVariable get) {
    for (const char* const name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
        if (get(name) != nullptr) return number_of(get(name), 0) == 0;
    return true;
}

void await_end_of_all(bool speaks, unsigned longest_ms) {
    constexpr unsigned step_ms = 2;
    struct stat kind {};
    const bool is_pipe = ::fstat(STDERR_FILENO, &kind) == 0 && S_ISFIFO(kind.st_mode);
    for (unsigned passed_ms = 0; passed_ms < longest_ms; passed_ms += step_ms) {
        int unread = 0;
        if (speaks && (!is_pipe || ::ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0))
            break;
        ::usleep(step_ms * 1000);
    }
}

std::string why_alone(GetVariable get) {
    if (is_pmix_process(get) || is_pmi_process(get)) return "";
    const auto several = [get](const char* name) { return number_of(get(name), 1) > 1; };
    // The script of a batch job has the number of tasks too, but is no step of several.
    if (get("SLURM_PROCID") != nullptr && several("SLURM_STEP_NUM_TASKS"))
        return std::string("srun has started ") + get("SLURM_STEP_NUM_TASKS") +
               " processes that do not know of each other. Use srun --mpi=pmix or --mpi=pmi2";
    if (several("OMPI_COMM_WORLD_SIZE"))
        return std::string("mpirun has started ") + get("OMPI_COMM_WORLD_SIZE") +
               " processes, but speaks no PMIx. Use Open MPI 4 or later";
    if (several("PMI_SIZE"))
        return std::string("the launcher has started ") + get("PMI_SIZE") +
               " processes and speaks neither PMIx nor PMI by PMI_FD. Use one that does, or "
               "hiroba run --hosts";
    return "";
}

}  // namespace hiroba::net
