// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tool/tool_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

#include "base/fatal.hpp"
#include "base/own_libraries.hpp"
#include "base/thread_context.hpp"

namespace hiroba::omp {

namespace {

std::string_view variable(const char* name) {
    const char* const text = std::getenv(name);
    return text != nullptr ? text : "";
}

bool is_disabled(bool speaks) {
    const std::string_view text = variable("OMP_TOOL");
    if (text == "disabled") return true;
    if (!text.empty() && text != "enabled" && speaks)
        say("OMP_TOOL: \"%.*s\" is neither \"enabled\" nor \"disabled\"; enabled",
            static_cast<int>(text.size()), text.data());
    return false;
}

ompt::StartTool start_tool_in(void* handle) noexcept {
    return reinterpret_cast<ompt::StartTool>(dlsym(handle, "ompt_start_tool"));
}

void open_library(const std::string& path, std::vector<ToolCandidate>& found, ToolLog& log,
                  bool speaks) {
    const CallsOfOwnLibrary of_tool;
    void* const handle = dlopen(path.c_str(), RTLD_LAZY);
    if (handle == nullptr) {
        const char* const why = dlerror();
        log.line("%s: %s", path.c_str(), why);
        if (speaks) say("OMP_TOOL_LIBRARIES: %s; left out", why);
        return;
    }
    const ompt::StartTool start = start_tool_in(handle);
    log.line("%s: %s", path.c_str(),
             start != nullptr ? "opened" : "opened; it has no ompt_start_tool");
    if (start == nullptr) {
        if (speaks) say("OMP_TOOL_LIBRARIES: %s has no ompt_start_tool; left out", path.c_str());
        dlclose(handle);
        return;
    }
    found.push_back({start, path, handle});
}

}  // namespace

void ToolLog::open(const char* where, std::uint32_t node, std::uint32_t nodes) noexcept {
    const std::string_view text = where;
    node_ = node;
    if (text.empty() || text == "disabled") return;
    if (text == "stdout" || text == "stderr") {
        descriptor_ = text == "stdout" ? STDOUT_FILENO : STDERR_FILENO;
        return;
    }
    char name[4096];
    if (nodes > 1)
        std::snprintf(name, sizeof name, "%s.%u", where, node);
    else
        std::snprintf(name, sizeof name, "%s", where);
    descriptor_ = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    closes_ = descriptor_ >= 0;
    if (!closes_) say("OMP_TOOL_VERBOSE_INIT: %s cannot be written", name);
}

void ToolLog::line(const char* format, ...) noexcept {
    if (descriptor_ < 0) return;
    char text[1024];
    const int head = std::snprintf(text, sizeof text, "OMP_TOOL node %u: ", node_);
    va_list arguments;
    va_start(arguments, format);
    const int body = std::vsnprintf(text + head, sizeof text - static_cast<std::size_t>(head) - 1,
                                    format, arguments);
    va_end(arguments);
    const int bytes = std::min(head + body, static_cast<int>(sizeof text) - 2);
    text[bytes] = '\n';
    if (write(descriptor_, text, static_cast<std::size_t>(bytes) + 1) < 0) descriptor_ = -1;
}

void ToolLog::close() noexcept {
    if (closes_) ::close(descriptor_);
    descriptor_ = -1;
    closes_ = false;
}

std::vector<ToolCandidate> find_tools(ToolLog& log, std::uint32_t node, std::uint32_t nodes) {
    const bool speaks = node == 0;
    std::vector<ToolCandidate> found;
    log.open(std::string(variable("OMP_TOOL_VERBOSE_INIT")).c_str(), node, nodes);
    if (is_disabled(speaks)) {
        log.line("disabled");
        return found;
    }
    const ompt::StartTool own = start_tool_in(RTLD_DEFAULT);
    log.line("ompt_start_tool in the program: %s", own != nullptr ? "found" : "not found");
    if (own != nullptr) found.push_back({own, {}, nullptr});
    std::string_view rest = variable("OMP_TOOL_LIBRARIES");
    if (rest.empty()) return found;
    const LoadingOwnLibraries loading{AtExit::finalize};
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        if (end != 0) open_library(std::string(rest.substr(0, end)), found, log, speaks);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return found;
}

}  // namespace hiroba::omp
