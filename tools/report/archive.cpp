// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/archive.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/record.hpp"
#include "base/record_format.hpp"

namespace hiroba::tools {

namespace {

constexpr std::string_view magic = "hirobaR1";  // the tag of the first section
constexpr std::string_view node_tag = "node....", names_tag = "names...";

struct SectionHead {
    char tag[8];
    std::uint64_t number;  ///< of a node
    std::uint64_t bytes;
};

std::string part_of(const std::string& path, std::uint64_t rank) {
    return fmt::format("{}.{}", path, rank);
}

/// What node 0 had mapped, as it says.
std::string maps_of(const std::string& path) { return path + ".maps"; }

std::string info_text(const RecordedJob& job) {
    std::string text =
        fmt::format("nodes {}\nthreads {}\nstatus {}\nbegin {} {}\nend {} {}\nfolder {}\n",
                    job.nodes, job.threads, job.status, job.begin.ticks, job.begin.ns,
                    job.end.ticks, job.end.ns, job.folder);
    text += "command " + job.command + "\n";
    for (std::size_t i = 0; i < job.files.size(); ++i)
        text += fmt::format("file {} {} {}\n", job.files[i].base,
                            i < job.file_stamps.size() ? job.file_stamps[i] : 0, job.files[i].path);
    return text;
}

RecordedJob read_info(std::string_view text) {
    RecordedJob job;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string key;
        fields >> key;
        if (key == "nodes") fields >> job.nodes;
        if (key == "threads") fields >> job.threads;
        if (key == "status") fields >> job.status;
        if (key == "begin") fields >> job.begin.ticks >> job.begin.ns;
        if (key == "end") fields >> job.end.ticks >> job.end.ns;
        if (key == "folder") std::getline(fields >> std::ws, job.folder);
        if (key == "command") std::getline(fields >> std::ws, job.command);
        if (key == "file") {
            LoadedFile file;
            std::uint64_t stamp = 0;
            fields >> file.base >> stamp;
            std::getline(fields >> std::ws, file.path);
            job.files.push_back(std::move(file));
            job.file_stamps.push_back(stamp);
        }
    }
    return job;
}

Error unusable(const std::string& path, std::string_view why) {
    return {ErrorKind::environment,
            fmt::format("{}: {}. Record a run: hiroba run --record FILE ...", path, why)};
}

Error cannot_write(const std::string& path) {
    return {ErrorKind::environment,
            fmt::format("{} cannot be written: {}. Name another file: hiroba run --record FILE",
                        path, ::strerror(errno))};
}

bool write_section(std::ostream& out, std::string_view tag, std::uint64_t number,
                   std::span<const std::byte> bytes) {
    SectionHead head{{}, number, bytes.size()};
    std::copy(tag.begin(), tag.end(), head.tag);
    out.write(reinterpret_cast<const char*>(&head), sizeof head);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    return static_cast<bool>(out);
}

bool write_section(std::ostream& out, std::string_view tag, const std::string& text) {
    return write_section(out, tag, 0, std::as_bytes(std::span(text)));
}

/// What of a node's file has been used.
std::span<const std::byte> used_part(std::span<const std::byte> bytes) {
    RecordFileHead head;
    if (bytes.size() < record_head_bytes) return {};
    std::memcpy(&head, bytes.data(), sizeof head);
    const std::uint64_t chunks = std::min(head.chunks, head.chunks_max);
    const std::uint64_t whole = (bytes.size() - record_head_bytes) / record_chunk_bytes;
    return bytes.first(record_head_bytes + std::min(chunks, whole) * record_chunk_bytes);
}

bool is_part(std::span<const std::byte> bytes) {
    return bytes.size() >= record_head_bytes &&
           std::memcmp(bytes.data(), record_magic, sizeof record_magic) == 0;
}

Result<void> write_whole(const std::string& path, const RecordedJob& job) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out || !write_section(out, magic, info_text(job)) || !out.flush())
        return cannot_write(path);
    return {};
}

constexpr std::uint32_t nodes_most = 1u << 16;

/// The sections of `bytes`, up to where they are cut.
void read_sections(const std::string& path, std::span<const std::byte> bytes, Archive& archive) {
    if (bytes.empty()) return;
    for (;;) {
        SectionHead head;
        if (bytes.size() < sizeof head) break;
        std::memcpy(&head, bytes.data(), sizeof head);
        bytes = bytes.subspan(sizeof head);
        const std::string_view tag(head.tag, sizeof head.tag);
        if (head.bytes > bytes.size()) break;
        const auto content = bytes.first(head.bytes);
        bytes = bytes.subspan(head.bytes);
        if (tag == node_tag && head.number < archive.nodes.size() && is_part(content))
            archive.nodes[head.number].bytes = content;
        else if (tag == names_tag)
            archive.names.assign(reinterpret_cast<const char*>(content.data()), content.size());
        if (bytes.empty()) return;
    }
    archive.notes.push_back(fmt::format("{} is cut: what is in front of that is shown", path));
}

/// What lies beside the file: of a job that was killed, or on a host that shares no folder.
void read_parts_beside(const std::string& path, Archive& archive) {
    std::string missing;
    for (std::size_t rank = 0; rank < archive.nodes.size(); ++rank) {
        if (!archive.nodes[rank].bytes.empty()) continue;
        const auto part = MappedFile::open(part_of(path, rank));
        if (part && is_part(part->bytes())) {
            archive.nodes[rank].bytes = used_part(part->bytes());
            archive.mapped.push_back(part);
        } else {
            missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
        }
    }
    if (!missing.empty())
        archive.notes.push_back(
            fmt::format("nothing is there of node {}: where its host shares no folder with this "
                        "one, copy {}.NODE from there beside {}",
                        missing, path, path));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
    // A pipe without a writer would hold up who opens it.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return nullptr;
    struct stat about {};
    std::shared_ptr<const MappedFile> file;
    if (::fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        const auto size = static_cast<std::size_t>(about.st_size);
        void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED)
            file = std::make_shared<const MappedFile>(static_cast<const std::byte*>(at), size);
    }
    ::close(fd);
    return file;
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(bytes_), size_); }

Result<Archive> open_archive(const std::string& path) {
    const auto file = MappedFile::open(path);
    if (!file) return unusable(path, "is no file that can be read, or is empty");
    const std::span<const std::byte> bytes = file->bytes();
    SectionHead head;
    if (bytes.size() < sizeof head || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
        return unusable(path, "is no recording of hiroba");
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.bytes > bytes.size() - sizeof head)
        return unusable(path, "is cut in its first section");
    Archive archive;
    archive.mapped.push_back(file);
    archive.job =
        read_info({reinterpret_cast<const char*>(bytes.data()) + sizeof head, head.bytes});
    if (archive.job.nodes == 0 || archive.job.nodes > nodes_most)
        return unusable(path, fmt::format("names {} nodes", archive.job.nodes));
    archive.nodes.resize(archive.job.nodes);
    read_sections(path, bytes.subspan(sizeof head + head.bytes), archive);
    read_parts_beside(path, archive);
    if (archive.job.files.empty()) {
        archive.job.files = files_in(maps_of(path));
        archive.job.file_stamps = stamps_of(archive.job.files);
    }
    if (archive.job.status < 0)
        archive.notes.emplace_back("the job had not ended: what it recorded up to there is shown");
    if (std::ranges::all_of(archive.nodes, [](const auto& node) { return node.bytes.empty(); }))
        return unusable(path, "no node has recorded anything");
    return archive;
}

RecordedJob::Clocks clocks_now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return {record_ticks(), static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
                                static_cast<std::uint64_t>(time.tv_nsec)};
}

std::vector<std::uint64_t> stamps_of(const std::vector<LoadedFile>& files) {
    std::vector<std::uint64_t> stamps;
    stamps.reserve(files.size());
    for (const LoadedFile& file : files) {
        struct stat about {};
        const bool known = ::stat(file.path.c_str(), &about) == 0;
        stamps.push_back(known ? static_cast<std::uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000u +
                                     static_cast<std::uint64_t>(about.st_mtim.tv_nsec)
                               : 0);
    }
    return stamps;
}

Result<void> begin_archive(const std::string& path, const RecordedJob& job) {
    std::error_code ignored;
    for (std::uint32_t rank = 0; rank < job.nodes; ++rank)
        std::filesystem::remove(part_of(path, rank), ignored);
    std::filesystem::remove(maps_of(path), ignored);
    return write_whole(path, job);
}

Result<void> renew_archive(const std::string& path, const RecordedJob& job) {
    return write_whole(path, job);
}

Result<void> finish_archive(const std::string& path, const RecordedJob& job,
                            const std::string& names) {
    const std::string next = path + ".new";
    std::vector<std::string> merged;
    {
        std::ofstream out(next, std::ios::binary | std::ios::trunc);
        bool good = out && write_section(out, magic, info_text(job));
        for (std::uint32_t rank = 0; good && rank < job.nodes; ++rank) {
            const auto part = MappedFile::open(part_of(path, rank));
            if (!part || !is_part(part->bytes())) continue;
            good = write_section(out, node_tag, rank, used_part(part->bytes()));
            merged.push_back(part_of(path, rank));
        }
        good = good && write_section(out, names_tag, names);
        if (!good || !out.flush()) {
            const Error error = cannot_write(next);
            std::filesystem::remove(next);
            return error;
        }
    }
    std::error_code failed;
    std::filesystem::rename(next, path, failed);
    if (failed) {
        errno = failed.value();
        return cannot_write(path);
    }
    for (const std::string& part : merged) std::filesystem::remove(part, failed);
    std::filesystem::remove(maps_of(path), failed);
    return {};
}

}  // namespace hiroba::tools
