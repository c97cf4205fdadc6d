// SPDX-License-Identifier: BSD-3-Clause
// Role: see crypto_library.hpp.
#include "net/wire/crypto_library.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/own_libraries.hpp"
#include "net/wire/crypto_memory.hpp"

namespace hiroba::net::wire {
namespace {

constexpr const char* file_name = "libcrypto.so.3";
/// OPENSSL_INIT_NO_LOAD_CONFIG, OPENSSL_INIT_NO_ATEXIT
constexpr std::uint64_t init_flags = 0x80 | 0x80000;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int own_names_first = 0;  // refused by the sanitizers' loader; no program has one there
#else
constexpr int own_names_first = RTLD_DEEPBIND;
#endif

Error unfit(const std::string& text) {
    return {ErrorKind::environment, "HIROBA_ENCRYPT=on: " + text +
                                        ". Install OpenSSL 3 (Debian: libssl3) on every host, or "
                                        "set HIROBA_ENCRYPT=off"};
}

/// Where the loader looks for libraries, in its order.
std::vector<std::string> library_folders() {
    std::vector<std::string> folders;
    void* const program = ::dlopen(nullptr, RTLD_LAZY);
    Dl_serinfo count{};
    if (program != nullptr && ::dlinfo(program, RTLD_DI_SERINFOSIZE, &count) == 0) {
        const std::size_t words = count.dls_size / sizeof(std::max_align_t) + 1;
        const auto memory = std::make_unique<std::max_align_t[]>(words);
        auto* const found = reinterpret_cast<Dl_serinfo*>(memory.get());
        ::dlinfo(program, RTLD_DI_SERINFOSIZE, found);
        if (::dlinfo(program, RTLD_DI_SERINFO, found) == 0)
            for (unsigned i = 0; i < found->dls_cnt; ++i)
                folders.emplace_back(found->dls_serpath[i].dls_name);
    }
    // Beside the C library, and where distributions have it.
    Dl_info libc{};
    if (::dladdr(reinterpret_cast<void*>(&::strerror), &libc) != 0 && libc.dli_fname != nullptr) {
        const std::string path = libc.dli_fname;
        folders.push_back(path.substr(0, path.rfind('/')));
    }
    for (const char* const usual : {"/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib64"})
        folders.emplace_back(usual);
    return folders;
}

/// A descriptor of a copy in memory, or -1 with errno.
int copy_of(int file) noexcept {
    struct stat facts {};
    if (::fstat(file, &facts) != 0) return -1;
    const int copy = ::memfd_create("hiroba-libcrypto", MFD_CLOEXEC);
    if (copy < 0) return -1;
    for (off_t left = facts.st_size; left > 0;) {
        const ssize_t some = ::sendfile(copy, file, nullptr, static_cast<std::size_t>(left));
        if (some <= 0) {
            const int saved_errno = some < 0 ? errno : EIO;
            ::close(copy);
            errno = saved_errno;
            return -1;
        }
        left -= some;
    }
    return copy;
}

Result<void*> open_copy() {
    std::string looked_in;
    std::vector<std::string> known;
    for (const std::string& folder : library_folders()) {
        if (std::ranges::find(known, folder) != known.end()) continue;
        known.push_back(folder);
        looked_in += (looked_in.empty() ? "" : ":") + folder;
        const std::string path = folder + "/" + file_name;
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        const int copy = copy_of(file);
        const int saved_errno = errno;
        ::close(file);
        if (copy < 0) return unfit("no copy of " + path + ": " + ::strerror(saved_errno));
        // By the process's number: a program that opens /proc/self/fd/N means another.
        const std::string name =
            "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(copy);
        void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | own_names_first);
        const char* const why = handle == nullptr ? ::dlerror() : nullptr;
        const std::string failure = why != nullptr ? why : "";
        ::close(copy);
        if (handle == nullptr) return unfit(path + " cannot be loaded: " + failure);
        return handle;
    }
    return unfit(std::string("there is no ") + file_name + " in " + looked_in);
}

void* allocate(std::size_t bytes, const char*, int) noexcept { return allocate_for_crypto(bytes); }
void* reallocate(void* memory, std::size_t bytes, const char*, int) noexcept {
    return reallocate_for_crypto(memory, bytes);
}
void release(void* memory, const char*, int) noexcept { free_for_crypto(memory); }

Result<CryptoLibrary> load_once() {
    const LoadingOwnLibraries own{AtExit::leave_usable};
    const auto handle = open_copy();
    if (!handle) return handle.error();
    hide_name(*handle);
    CryptoLibrary library;
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(*handle, name));
        if (function == nullptr) missing = name;
    };
    int (*set_memory)(decltype(&allocate), decltype(&reallocate), decltype(&release)) = nullptr;
    int (*start)(std::uint64_t, const void*) = nullptr;
    find(set_memory, "CRYPTO_set_mem_functions");
    find(start, "OPENSSL_init_crypto");
    find(library.context_new, "EVP_CIPHER_CTX_new");
    find(library.context_free, "EVP_CIPHER_CTX_free");
    find(library.context_ctrl, "EVP_CIPHER_CTX_ctrl");
    find(library.context_set_padding, "EVP_CIPHER_CTX_set_padding");
    find(library.init, "EVP_CipherInit_ex");
    find(library.update, "EVP_CipherUpdate");
    find(library.final, "EVP_CipherFinal_ex");
    find(library.aes_128_ecb, "EVP_aes_128_ecb");
    find(library.aes_128_gcm, "EVP_aes_128_gcm");
    find(library.chacha20_poly1305, "EVP_chacha20_poly1305");
    if (missing != nullptr) return unfit(std::string(file_name) + " has no " + missing);
    if (set_memory(&allocate, &reallocate, &release) != 1)
        return unfit(std::string(file_name) + " has allocated before it was asked to");
    if (start(init_flags, nullptr) != 1) return unfit(std::string(file_name) + " does not start");
    return library;
}

}  // namespace

Result<const CryptoLibrary*> CryptoLibrary::load() {
    static const Result<CryptoLibrary> loaded = load_once();
    if (!loaded) return loaded.error();
    return &*loaded;
}

}  // namespace hiroba::net::wire
