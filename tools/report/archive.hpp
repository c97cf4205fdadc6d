// SPDX-License-Identifier: BSD-3-Clause
// Role: the file of a recorded run: what the launcher knows of the job, what each node recorded,
// and the names of the addresses in it.
// Invariant: sections, each with its length in front. While the job runs the file has the first
// section alone, what node K records lies beside it, in FILE.K, and what node 0 has mapped in
// FILE.maps; a job that was killed leaves it so, and is read from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

/// What the launcher knows.
struct RecordedJob {
    std::uint32_t nodes = 0, threads = 0;
    std::string command, folder;
    int status = -1;  ///< of the job; -1: it has not ended
    struct Clocks {
        std::uint64_t ticks = 0, ns = 0;  ///< of one moment, on the launcher's host
    } begin, end;
    std::vector<LoadedFile> files;           ///< of node 0
    std::vector<std::uint64_t> file_stamps;  ///< of each, when it was last changed; 0: unknown
};

/// Bytes of a file, as long as this lives.
class MappedFile {
public:
    /// Empty when `path` cannot be read.
    static std::shared_ptr<const MappedFile> open(const std::string& path);
    MappedFile(const std::byte* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();
    std::span<const std::byte> bytes() const { return {bytes_, size_}; }

private:
    const std::byte* bytes_;
    std::size_t size_;
};

struct Archive {
    RecordedJob job;
    struct Node {
        std::span<const std::byte> bytes;  ///< empty: there is nothing of this node
    };
    std::vector<Node> nodes;
    std::string names;               ///< as the launcher has found them; empty: it has not
    std::vector<std::string> notes;  ///< what is lacking, a line each
    std::vector<std::shared_ptr<const MappedFile>> mapped;
};

Result<Archive> open_archive(const std::string& path);

/// The clocks of this moment, here.
RecordedJob::Clocks clocks_now();

/// When each file was changed last.
std::vector<std::uint64_t> stamps_of(const std::vector<LoadedFile>& files);

/// Begins the file: with `job` alone, and without what an older job left beside it.
Result<void> begin_archive(const std::string& path, const RecordedJob& job);
/// As above, of a job that has ended.
Result<void> renew_archive(const std::string& path, const RecordedJob& job);
/// Brings together what the nodes have recorded.
/// @param names  of the addresses in it (tools/report/names.hpp)
Result<void> finish_archive(const std::string& path, const RecordedJob& job,
                            const std::string& names);

}  // namespace hiroba::tools
