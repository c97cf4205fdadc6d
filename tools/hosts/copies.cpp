// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/copies.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tools/become.hpp"
#include "tools/run/environment.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/program.hpp"

namespace hiroba::tools {

namespace {

namespace fs = std::filesystem;

/// Whether a file of the runtime's folder goes along; in a build the folder holds other libraries.
bool is_of_runtime(const std::string& file) {
    if (file == "libgomp.so.1" || std::ranges::find(stand_ins, file) != stand_ins.end())
        return true;
    const bool is_library = file.starts_with("libhiroba") || file.starts_with("libacp.so");
    return is_library && file.find(".so") != file.npos;
}

/// The folder on the hosts: one name on all, since nodes compare where their files are.
std::string name_there(const std::string& folder) {
    return fs::path(folder).filename().string() + "-there";
}

/// A child that executes `words` with these descriptors; -1 on failure.
pid_t start(const std::vector<std::string>& words, int input, int output) {
    const std::vector<char*> pointers = pointers_to(words);
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
}

bool succeeded(pid_t child) {
    int status = 0;
    if (child < 0) return false;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// `command host words...`, as agents are started.
std::vector<std::string> on_host(const std::string& command, const std::string& host,
                                 const std::vector<std::string>& words) {
    std::istringstream stream(command);
    std::vector<std::string> all;
    for (std::string word; stream >> word;) all.push_back(word);
    all.push_back(host);
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

/// Whether `from` was read there by the other: tar | command.
bool pipe_into(const std::vector<std::string>& from, const std::vector<std::string>& to) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const pid_t writer = start(from, nothing, ends[1]);
    const pid_t reader = start(to, ends[0], nothing);
    for (const int fd : {ends[0], ends[1], nothing}) ::close(fd);
    const bool written = succeeded(writer);
    return succeeded(reader) && written;
}

Error cannot(const std::string& what) { return {ErrorKind::environment, "--copy: " + what}; }

}  // namespace

/// Links under the names they get there: bin/hiroba, lib/ with the runtime's files, program/.
Result<void> Copies::stage(const std::string& program) {
    const auto found = find_program(program);
    if (!found) return found.error();
    const auto library = find_library();
    if (!library) return library.error();
    char name[] = "/tmp/hiroba-copy-XXXXXX";
    if (::mkdtemp(name) == nullptr)
        return cannot(fmt::format("no folder can be made in /tmp: {}", ::strerror(errno)));
    folder_ = name;
    std::error_code failed;
    const fs::path top = folder_;
    for (const char* const part : {"bin", "lib", "program"})
        fs::create_directory(top / part, failed);
    fs::create_symlink(fs::read_symlink("/proc/self/exe", failed), top / "bin/hiroba", failed);
    fs::create_symlink(fs::absolute(*found), top / "program" / fs::path(*found).filename(), failed);
    for (const auto& file : fs::directory_iterator(fs::path(*library).parent_path(), failed)) {
        const std::string base = file.path().filename().string();
        if (is_of_runtime(base)) fs::create_symlink(file.path(), top / "lib" / base, failed);
    }
    if (failed) return cannot(fmt::format("{}: {}", folder_, failed.message()));
    return {};
}

Result<void> Copies::send(const std::string& command, const std::string& program,
                          std::vector<HostPlan>& hosts) {
    if (auto staged = stage(program); !staged) return staged;
    command_ = command;
    const fs::path top = folder_;
    const std::string own = top.filename().string();
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        const std::string there = name_there(folder_);
        hosts_.push_back(hosts[i].name);
        const std::vector<std::string> pack = {
            "tar", "-chf", "-", "-C", "/tmp", "--transform", fmt::format("s,^{},{},", own, there),
            own};
        if (!pipe_into(pack, on_host(command, hosts[i].name, {"tar", "-xf", "-", "-C", "/tmp"})))
            return cannot(
                fmt::format("host {}: the files did not arrive. Check that `{} {} tar` "
                            "works, and that /tmp has room",
                            hosts[i].name, command, hosts[i].name));
        hosts[i].hiroba = "/tmp/" + there + "/bin/hiroba";
        hosts[i].program = "/tmp/" + there + "/program/" + fs::path(program).filename().string();
    }
    return {};
}

Copies::~Copies() {
    if (folder_.empty()) return;
    for (const std::string& host : hosts_) {
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        const std::vector<std::string> remove = {"rm", "-rf", "/tmp/" + name_there(folder_)};
        succeeded(start(on_host(command_, host, remove), nothing, nothing));
        ::close(nothing);
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

}  // namespace hiroba::tools
