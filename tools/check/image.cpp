// SPDX-License-Identifier: BSD-3-Clause
#include "tools/check/image.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "tools/run/elf_file.hpp"

namespace hiroba::tools {
namespace {

/// Descriptors that close by themselves.
struct Descriptor {
    int number;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
};

std::span<const Elf64_Dyn> entries(std::uintptr_t dynamic) {
    const auto* const first = reinterpret_cast<const Elf64_Dyn*>(dynamic);
    std::size_t count = 0;
    while (first != nullptr && first[count].d_tag != DT_NULL) ++count;
    return {first, count};
}

}  // namespace

Result<Image> Image::map(const std::string& path) {
    const auto file = ElfFile::open(path);
    if (!file || file->header().e_machine != EM_X86_64)
        return Error{ErrorKind::environment, path + " is no x86-64 ELF file"};
    std::uint64_t low = ~std::uint64_t{0}, high = 0;
    for (const GElf_Phdr& segment : file->segments()) {
        if (segment.p_type != PT_LOAD) continue;
        low = std::min(low, round_down(segment.p_vaddr, page_bytes));
        high = std::max<std::uint64_t>(high, segment.p_vaddr + segment.p_memsz);
    }
    if (low >= high) return Error{ErrorKind::environment, path + " has no load segment"};

    Image image;
    image.path_ = path;
    image.bytes_ = high - low;
    void* const memory = ::mmap(nullptr, image.bytes_, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return Error{ErrorKind::environment, fmt::format("no {} bytes of address space for {}: {}",
                                                         image.bytes_, path, ::strerror(errno))};
    image.memory_ = memory;
    image.bias_ = reinterpret_cast<std::uintptr_t>(memory) - low;
    const Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    bool first = true;
    for (const GElf_Phdr& segment : file->segments()) {
        if (segment.p_type == PT_DYNAMIC) image.dynamic_ = image.bias_ + segment.p_vaddr;
        if (segment.p_type == PT_GNU_STACK) image.code_on_stack_ = (segment.p_flags & PF_X) != 0;
        if (segment.p_type != PT_LOAD) continue;
        if (std::exchange(first, false)) image.linked_base_ = segment.p_vaddr - segment.p_offset;
        if (segment.p_filesz == 0) continue;
        const std::uint64_t skew = segment.p_vaddr % page_bytes;
        const std::uintptr_t at = image.bias_ + segment.p_vaddr - skew;
        if (::mmap(reinterpret_cast<void*>(at), segment.p_filesz + skew, PROT_READ,
                   MAP_PRIVATE | MAP_FIXED, descriptor.number,
                   static_cast<off_t>(segment.p_offset - skew)) == MAP_FAILED)
            return Error{ErrorKind::environment,
                         fmt::format("cannot read {}: {}", path, ::strerror(errno))};
    }
    return image;
}

Image::Image(Image&& other) noexcept
    : path_(std::move(other.path_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      bias_(other.bias_),
      dynamic_(other.dynamic_),
      linked_base_(other.linked_base_),
      code_on_stack_(other.code_on_stack_) {}

Image::~Image() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

std::uint64_t Image::number(std::int64_t tag) const {
    for (const Elf64_Dyn& entry : entries(dynamic_))
        if (entry.d_tag == tag) return entry.d_un.d_val;
    return 0;
}

std::uintptr_t Image::pointer(std::int64_t tag) const {
    const std::uint64_t linked = number(tag);
    return linked == 0 ? 0 : bias_ + linked;
}

std::vector<std::string> Image::strings(std::int64_t tag) const {
    std::vector<std::string> found;
    const auto* const table = reinterpret_cast<const char*>(pointer(DT_STRTAB));
    for (const Elf64_Dyn& entry : entries(dynamic_))
        if (table != nullptr && entry.d_tag == tag) found.emplace_back(table + entry.d_un.d_val);
    return found;
}

bool Image::run_path_first() const { return strings(DT_RUNPATH).empty(); }

std::string Image::run_path() const {
    std::vector<std::string> all = strings(DT_RUNPATH);
    if (all.empty()) all = strings(DT_RPATH);
    if (all.empty()) return {};
    std::error_code failed;
    const std::string origin = std::filesystem::canonical(path_, failed).parent_path().string();
    std::string text = all[0];
    for (const std::string_view name : {"${ORIGIN}", "$ORIGIN"})
        for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
            text.replace(at, name.size(), origin), at += origin.size();
    return text;
}

std::vector<std::uintptr_t> Image::slots_of(std::string_view name) const {
    std::vector<std::uintptr_t> slots;
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(pointer(DT_SYMTAB));
    const auto* const text = reinterpret_cast<const char*>(pointer(DT_STRTAB));
    if (symbols == nullptr || text == nullptr) return slots;
    const auto look = [&](std::int64_t table, std::int64_t size) {
        const auto* const first = reinterpret_cast<const Elf64_Rela*>(pointer(table));
        if (first == nullptr) return;
        for (const Elf64_Rela& each : std::span(first, number(size) / sizeof *first)) {
            const Elf64_Sym& symbol = symbols[ELF64_R_SYM(each.r_info)];
            if (symbol.st_shndx == SHN_UNDEF && name == text + symbol.st_name)
                slots.push_back(bias_ + each.r_offset);
        }
    };
    look(DT_JMPREL, DT_PLTRELSZ);
    look(DT_RELA, DT_RELASZ);
    return slots;
}

}  // namespace hiroba::tools
