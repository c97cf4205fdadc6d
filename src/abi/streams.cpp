// SPDX-License-Identifier: BSD-3-Clause
// Role: prepares and flushes streams of three languages. libstdc++ and libgfortran are those of the
// program, found by name; our own libstdc++ is hidden and has no streams.
// Invariant: a stream object of the program may lie in global memory (g++ copies std::cout into the
// executable), so node 0's choice of buffer reaches all; the buffers lie in libstdc++, one set per
// node at equal addresses, and are constructed on all of them here.
#include "abi/streams.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <ext/stdio_sync_filebuf.h>
#include <istream>
#include <ostream>
#include <typeinfo>

#include "abi/libc/files/whole_output.hpp"

namespace hiroba::abi {
namespace {

/// libgfortran's subroutine FLUSH; a null unit means all.
using FlushFortran = void(int* unit);
constinit FlushFortran* flush_fortran = nullptr;

template <class T>
T* find_in_program(const char* name) noexcept {
    return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
}

/// The program's std::cout or wcout. Its buffer is stdio's, or, once the program has called
/// sync_with_stdio(false), a stdio_filebuf; any other is the program's own business.
template <class Char>
struct Output {
    std::basic_ostream<Char>* stream = nullptr;

    void flush() const noexcept {
        if (stream == nullptr) return;
        std::basic_streambuf<Char>* const buffer = stream->rdbuf();
        if (buffer == nullptr) return;
        // By name: the class in the program's libstdc++ is another than that in ours.
        const char* const type = typeid(*buffer).name();
        if (std::strncmp(type, stdio_filebuf, sizeof stdio_filebuf - 1) == 0) buffer->pubsync();
    }
    static constexpr char stdio_filebuf[] = "N9__gnu_cxx13stdio_filebufI";
};
constinit Output<char> narrow_output;
constinit Output<wchar_t> wide_output;

/// A standard stream and the buffer that goes through stdio, to be put back byte by byte: there is
/// no other way back from sync_with_stdio(false).
template <class Char>
class SavedBuffer {
public:
    explicit SavedBuffer(std::basic_ios<Char>* stream) noexcept : stream_(stream) {}

    void save() noexcept {
        if (stream_ == nullptr) return;
        buffer_ = stream_->rdbuf();
        std::memcpy(bytes_, static_cast<const void*>(buffer_), sizeof bytes_);
    }
    void restore() noexcept {
        if (stream_ == nullptr) return;
        std::memcpy(static_cast<void*>(buffer_), bytes_, sizeof bytes_);
        stream_->rdbuf(buffer_);
    }

private:
    std::basic_ios<Char>* stream_;
    std::basic_streambuf<Char>* buffer_ = nullptr;
    std::byte bytes_[sizeof(__gnu_cxx::stdio_sync_filebuf<Char>)];
};

/// Constructs std::cout and its kind: g++ leaves it to the program's initializers, which run on
/// node 0 alone.
void construct_cxx_streams() noexcept {
    alignas(16) static constinit char initializer[16] = {};
    if (auto* const construct = find_in_program<void(void*)>("_ZNSt8ios_base4InitC1Ev")) {
        construct(initializer);
    }
}

/// Constructs the buffers of both settings and leaves the streams as they were: through stdio. Not
/// on node 0, where libstdc++ would then take a later call of the program for the second.
void construct_unsynchronized_buffers() noexcept {
    auto* const synchronize = find_in_program<bool(bool)>("_ZNSt8ios_base15sync_with_stdioEb");
    if (synchronize == nullptr) return;
    // Found as what they are: basic_ios is a virtual base, at another address.
    const auto out = &find_in_program<std::ostream>;
    const auto wide_out = &find_in_program<std::wostream>;
    SavedBuffer<char> narrow[] = {SavedBuffer<char>(find_in_program<std::istream>("_ZSt3cin")),
                                  SavedBuffer<char>(out("_ZSt4cout")),
                                  SavedBuffer<char>(out("_ZSt4cerr")),
                                  SavedBuffer<char>(out("_ZSt4clog"))};
    SavedBuffer<wchar_t> wide[] = {
        SavedBuffer<wchar_t>(find_in_program<std::wistream>("_ZSt4wcin")),
        SavedBuffer<wchar_t>(wide_out("_ZSt5wcout")), SavedBuffer<wchar_t>(wide_out("_ZSt5wcerr")),
        SavedBuffer<wchar_t>(wide_out("_ZSt5wclog"))};
    for (auto& one : narrow) one.save();
    for (auto& one : wide) one.save();
    synchronize(false);
    for (auto& one : narrow) one.restore();
    for (auto& one : wide) one.restore();
}

}  // namespace

void prepare_streams(NodeId self, std::uint32_t nodes) noexcept {
    if (nodes == 1) return;
    prepare_whole_output();
    flush_fortran = find_in_program<FlushFortran>("_gfortran_flush_i4");
    construct_cxx_streams();
    narrow_output.stream = find_in_program<std::ostream>("_ZSt4cout");
    wide_output.stream = find_in_program<std::wostream>("_ZSt5wcout");
    if (self.value != 0) construct_unsynchronized_buffers();
}

void flush_streams() noexcept {
    narrow_output.flush();
    wide_output.flush();
    if (flush_fortran != nullptr) flush_fortran(nullptr);
    flush_output();
}

void flush_output() noexcept { write_out_standard_output(); }

}  // namespace hiroba::abi
