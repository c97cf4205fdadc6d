// SPDX-License-Identifier: BSD-3-Clause
// Role: reads ELF headers. Invariant: every offset from the file is checked against its size.
#include "omp/atomic/code_sections.hpp"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "omp/atomic/rewriter.hpp"

namespace hiroba::omp {
namespace {

/// A file mapped for reading.
class MappedFile {
public:
    explicit MappedFile(const std::string& path) {
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
            void* bytes = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ,
                               MAP_PRIVATE, fd, 0);
            if (bytes != MAP_FAILED) {
                bytes_ = {static_cast<const std::byte*>(bytes),
                          static_cast<std::size_t>(status.st_size)};
            }
        }
        error_ = errno;
        if (fd >= 0) close(fd);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }

    bool empty() const { return bytes_.empty(); }
    int error() const { return error_; }

    /// `count` records at `offset`, or nothing when they do not lie in the file.
    template <class Record>
    std::span<const Record> records(std::uint64_t offset, std::size_t count) const {
        if (offset > bytes_.size() || offset % alignof(Record) != 0 ||
            count > (bytes_.size() - offset) / sizeof(Record)) {
            return {};
        }
        return {reinterpret_cast<const Record*>(bytes_.data() + offset), count};
    }

private:
    Bytes bytes_;
    int error_ = 0;
};

int protection_of(std::uint32_t flags) {
    return ((flags & PF_R) ? PROT_READ : 0) | ((flags & PF_W) ? PROT_WRITE : 0) |
           ((flags & PF_X) ? PROT_EXEC : 0);
}

void add_clipped(CodeLayout& layout, const RewriteTarget& target, const CodeSection& section) {
    const dsm::AddressRange& range = section.range;
    if (target.executable.empty()) {
        layout.sections.push_back(section);
        return;
    }
    for (const dsm::AddressRange& wanted : target.executable) {
        const std::uintptr_t begin = std::max(range.address, wanted.address);
        const std::uintptr_t end = std::min(range.end(), wanted.end());
        if (begin < end)
            layout.sections.push_back({{begin, end - begin}, section.protection, section.segment});
    }
}

}  // namespace

Result<CodeLayout> find_code(const RewriteTarget& target) {
    const MappedFile file{target.path};
    if (file.empty()) {
        return Error{ErrorKind::environment,
                     "cannot read " + target.path + " to find its code: " + strerror(file.error())};
    }
    const auto header = file.records<Elf64_Ehdr>(0, 1);
    if (header.empty() || memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_machine != EM_X86_64) {
        return Error{ErrorKind::environment, target.path + " is not an x86-64 ELF file"};
    }
    const auto segments = file.records<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum);
    const auto sections = file.records<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);

    CodeLayout layout;
    std::uintptr_t low = UINTPTR_MAX;
    std::uintptr_t high = 0;
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type != PT_LOAD) continue;
        const std::uintptr_t begin = target.bias + segment.p_vaddr;
        low = std::min(low, begin);
        high = std::max<std::uintptr_t>(high, begin + segment.p_memsz);
        if (!(segment.p_flags & PF_X)) continue;

        const int protection = protection_of(segment.p_flags);
        const auto number = static_cast<std::size_t>(&segment - segments.data());
        if (sections.empty()) {
            add_clipped(layout, target, {{begin, segment.p_filesz}, protection, number});
            continue;
        }
        for (const Elf64_Shdr& section : sections) {
            if (!(section.sh_flags & SHF_EXECINSTR) || section.sh_type != SHT_PROGBITS) continue;
            if (section.sh_addr < segment.p_vaddr ||
                section.sh_addr + section.sh_size > segment.p_vaddr + segment.p_filesz) {
                continue;
            }
            add_clipped(layout, target,
                        {{target.bias + section.sh_addr, section.sh_size}, protection, number});
        }
    }
    if (low > high) {
        return Error{ErrorKind::environment, target.path + " has no load segment"};
    }
    layout.object = {low, high - low};
    return layout;
}

}  // namespace hiroba::omp
