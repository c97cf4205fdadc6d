// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of libc that look something up and answer with a structure of libc's own, good
// until the next such call: users, groups, hosts, services, file systems, the locale's conventions.
// As static_results.cpp, for what points to more.
// Invariant: each function has one answer on each node, in a block of global memory that stays
// until the function's next one there.
#include <aliases.h>
#include <arpa/inet.h>
#include <fstab.h>
#include <grp.h>
#include <gshadow.h>
#include <locale.h>
#include <mntent.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pwd.h>
#include <rpc/netdb.h>
#include <shadow.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ttyent.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>

#include <atomic>
#include <cstddef>

#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/handles/kept_objects.hpp"
#include "abi/libc/memory/copied_results.hpp"
#include "abi/libc/real.hpp"

using hiroba::abi::Copying;

namespace {

using Conventions = struct lconv;
using User = struct passwd;
using Group = struct group;
using Shadow = struct spwd;
using Host = struct hostent;
using Service = struct servent;
using Protocol = struct protoent;
using Network = struct netent;
using Mount = struct mntent;
using FileSystem = struct fstab;
using Login = struct utmpx;
using OldLogin = struct utmp;
using EtherAddress = struct ether_addr;
using GroupShadow = struct sgrp;
using Rpc = struct rpcent;
using Alias = struct aliasent;
using Terminal = struct ttyent;
using BrokenDownTime = struct tm;

/// The copy of one with its texts; null while counting.
template <class T, class... Members>
T* copy_with_texts(Copying& to, const T& made, Members... members) noexcept {
    T* const place = to.one(made);
    const auto copy_text = [&](auto member) {
        auto* const text = to.text(made.*member);
        if (place != nullptr) place->*member = text;
    };
    (copy_text(members), ...);
    return place;
}

template <class T>
T* with_list(T* place, char** T::*member, char** list) noexcept {
    if (place != nullptr) place->*member = list;
    return place;
}

User* copy(Copying& to, const User& made) noexcept {
    return copy_with_texts(to, made, &User::pw_name, &User::pw_passwd, &User::pw_gecos,
                           &User::pw_dir, &User::pw_shell);
}
Group* copy(Copying& to, const Group& made) noexcept {
    Group* const place = copy_with_texts(to, made, &Group::gr_name, &Group::gr_passwd);
    return with_list(place, &Group::gr_mem, to.list(made.gr_mem));
}
Shadow* copy(Copying& to, const Shadow& made) noexcept {
    return copy_with_texts(to, made, &Shadow::sp_namp, &Shadow::sp_pwdp);
}
Host* copy(Copying& to, const Host& made) noexcept {
    Host* const place = copy_with_texts(to, made, &Host::h_name);
    with_list(place, &Host::h_aliases, to.list(made.h_aliases));
    return with_list(place, &Host::h_addr_list,
                     to.list(made.h_addr_list, static_cast<std::size_t>(made.h_length)));
}
Service* copy(Copying& to, const Service& made) noexcept {
    Service* const place = copy_with_texts(to, made, &Service::s_name, &Service::s_proto);
    return with_list(place, &Service::s_aliases, to.list(made.s_aliases));
}
Protocol* copy(Copying& to, const Protocol& made) noexcept {
    Protocol* const place = copy_with_texts(to, made, &Protocol::p_name);
    return with_list(place, &Protocol::p_aliases, to.list(made.p_aliases));
}
Network* copy(Copying& to, const Network& made) noexcept {
    Network* const place = copy_with_texts(to, made, &Network::n_name);
    return with_list(place, &Network::n_aliases, to.list(made.n_aliases));
}
Mount* copy(Copying& to, const Mount& made) noexcept {
    return copy_with_texts(to, made, &Mount::mnt_fsname, &Mount::mnt_dir, &Mount::mnt_type,
                           &Mount::mnt_opts);
}
FileSystem* copy(Copying& to, const FileSystem& made) noexcept {
    FileSystem* const place = copy_with_texts(to, made, &FileSystem::fs_spec, &FileSystem::fs_file,
                                              &FileSystem::fs_vfstype, &FileSystem::fs_mntops);
    const char* const type = to.text(made.fs_type);
    if (place != nullptr) place->fs_type = type;
    return place;
}
GroupShadow* copy(Copying& to, const GroupShadow& made) noexcept {
    GroupShadow* const place =
        copy_with_texts(to, made, &GroupShadow::sg_namp, &GroupShadow::sg_passwd);
    with_list(place, &GroupShadow::sg_adm, to.list(made.sg_adm));
    return with_list(place, &GroupShadow::sg_mem, to.list(made.sg_mem));
}
Rpc* copy(Copying& to, const Rpc& made) noexcept {
    Rpc* const place = copy_with_texts(to, made, &Rpc::r_name);
    return with_list(place, &Rpc::r_aliases, to.list(made.r_aliases));
}
Alias* copy(Copying& to, const Alias& made) noexcept {
    Alias* const place = copy_with_texts(to, made, &Alias::alias_name);
    return with_list(place, &Alias::alias_members,
                     to.texts(made.alias_members, made.alias_members_len, false));
}
Terminal* copy(Copying& to, const Terminal& made) noexcept {
    return copy_with_texts(to, made, &Terminal::ty_name, &Terminal::ty_getty, &Terminal::ty_type,
                           &Terminal::ty_window, &Terminal::ty_comment);
}
BrokenDownTime* copy(Copying& to, const BrokenDownTime& made) noexcept { return to.one(made); }
Login* copy(Copying& to, const Login& made) noexcept { return to.one(made); }
OldLogin* copy(Copying& to, const OldLogin& made) noexcept { return to.one(made); }
EtherAddress* copy(Copying& to, const EtherAddress& made) noexcept { return to.one(made); }
char* copy(Copying& to, const char& made) noexcept { return to.text(&made); }
Conventions* copy(Copying& to, const Conventions& made) noexcept {
    using L = Conventions;
    return copy_with_texts(to, made, &L::decimal_point, &L::thousands_sep, &L::grouping,
                           &L::int_curr_symbol, &L::currency_symbol, &L::mon_decimal_point,
                           &L::mon_thousands_sep, &L::mon_grouping, &L::positive_sign,
                           &L::negative_sign);
}

/// One function's last answer on this node.
using Slot = std::atomic<void*>;

template <class T>
T* answer(Slot& slot, T* made, const void* return_address) noexcept {
    using namespace hiroba::abi;
    if (made == nullptr || !is_spread() || !is_for_program(return_address)) return made;
    T* const mine = copy_for_program([&](Copying& to) { return copy(to, *made); });
    void* const before = slot.exchange(mine);
    if (before != nullptr) give_back(before);
    return mine;
}

/// A list of the process's that is handed out entry by entry: how far is the job's, and a node that
/// stands elsewhere goes there first. Threads that share it synchronize, as they must alone.
class Enumeration {
public:
    explicit constexpr Enumeration(std::size_t number) noexcept : number_(number) {}

    template <class Rewind, class Next>
    auto next(const void* return_address, Rewind rewind, Next next_here) noexcept {
        using namespace hiroba::abi;
        if (!spans_nodes() || !is_for_program(return_address)) return next_here();
        std::uint64_t& entries = publish_kept_objects()->calls.entries[number_];
        if (here_.load() != entries) {
            rewind();
            std::uint64_t at = 0;
            while (at < entries && next_here() != nullptr) ++at;
            here_.store(at);
        }
        auto* const found = next_here();
        if (found != nullptr) entries = ++here_;
        return found;
    }
    void begin_again(const void* return_address) noexcept {
        using namespace hiroba::abi;
        here_.store(0);
        if (spans_nodes() && is_for_program(return_address))
            publish_kept_objects()->calls.entries[number_] = 0;
    }

private:
    std::size_t number_;
    std::atomic<std::uint64_t> here_{0};  ///< entries that this node's libc has handed out
};

}  // namespace

#define HIROBA_CALLER __builtin_return_address(0)
#define HIROBA_LOOKUP(result, name, parameters, arguments)         \
    HIROBA_REAL(name);                                             \
    result* name parameters {                                      \
        static constinit Slot slot{nullptr};                       \
        return answer(slot, real_##name arguments, HIROBA_CALLER); \
    }
/// get...ent(), set...ent() and end...ent().
#define HIROBA_ENUMERATION(number, result, get, set, end, parameters, argument, first)   \
    HIROBA_REAL(get);                                                                    \
    HIROBA_REAL(set);                                                                    \
    HIROBA_REAL(end);                                                                    \
    static constinit Enumeration of_##get{number};                                       \
    result* get() {                                                                      \
        static constinit Slot slot{nullptr};                                             \
        const void* const caller = HIROBA_CALLER;                                        \
        result* const made = of_##get.next(                                              \
            caller, [] { real_##set first; }, []() -> result* { return real_##get(); }); \
        return answer(slot, made, caller);                                               \
    }                                                                                    \
    decltype(real_##set first) set parameters {                                          \
        of_##get.begin_again(HIROBA_CALLER);                                             \
        return real_##set argument;                                                      \
    }                                                                                    \
    decltype(real_##end()) end() {                                                       \
        of_##get.begin_again(HIROBA_CALLER);                                             \
        return real_##end();                                                             \
    }
#define HIROBA_ENUMERATION_KEPT_OPEN(number, result, get, set, end) \
    HIROBA_ENUMERATION(number, result, get, set, end, (int stays_open), (stays_open), (1))
#define HIROBA_TEXT_LOOKUP(name, parameters, arguments) \
    HIROBA_LOOKUP(char, name, parameters, arguments)

using hiroba::abi::near;

#pragma GCC visibility push(default)
extern "C" {

HIROBA_LOOKUP(struct passwd, getpwnam, (const char* name), (name))
HIROBA_LOOKUP(struct passwd, getpwuid, (uid_t id), (id))
HIROBA_LOOKUP(struct passwd, fgetpwent, (FILE * from), (near(from)))
HIROBA_LOOKUP(struct group, getgrnam, (const char* name), (name))
HIROBA_LOOKUP(struct group, getgrgid, (gid_t id), (id))
HIROBA_LOOKUP(struct group, fgetgrent, (FILE * from), (near(from)))
HIROBA_LOOKUP(struct spwd, getspnam, (const char* name), (name))
HIROBA_LOOKUP(struct spwd, sgetspent, (const char* text), (text))
HIROBA_LOOKUP(struct spwd, fgetspent, (FILE * from), (near(from)))

HIROBA_LOOKUP(struct hostent, gethostbyname, (const char* name), (name))
HIROBA_LOOKUP(struct hostent, gethostbyname2, (const char* name, int family), (name, family))
HIROBA_LOOKUP(struct hostent, gethostbyaddr, (const void* address, socklen_t bytes, int family),
              (address, bytes, family))
HIROBA_LOOKUP(struct servent, getservbyname, (const char* name, const char* protocol),
              (name, protocol))
HIROBA_LOOKUP(struct servent, getservbyport, (int port, const char* protocol), (port, protocol))
HIROBA_LOOKUP(struct protoent, getprotobyname, (const char* name), (name))
HIROBA_LOOKUP(struct protoent, getprotobynumber, (int number), (number))
HIROBA_LOOKUP(struct netent, getnetbyname, (const char* name), (name))
HIROBA_LOOKUP(struct netent, getnetbyaddr, (uint32_t address, int family), (address, family))

HIROBA_LOOKUP(struct mntent, getmntent, (FILE * from), (near(from)))
/// libc closes it inside itself.
int endmntent(FILE* from) noexcept {
    if (from != nullptr) fclose(from);
    return 1;
}
HIROBA_LOOKUP(struct fstab, getfsspec, (const char* name), (name))
HIROBA_LOOKUP(struct fstab, getfsfile, (const char* name), (name))
HIROBA_LOOKUP(struct utmpx, getutxid, (const struct utmpx* like), (like))
HIROBA_LOOKUP(struct utmpx, getutxline, (const struct utmpx* like), (like))
HIROBA_LOOKUP(struct lconv, localeconv, (), ())

HIROBA_LOOKUP(struct ether_addr, ether_aton, (const char* text), (text))
HIROBA_TEXT_LOOKUP(ether_ntoa, (const struct ether_addr* address), (address))
HIROBA_TEXT_LOOKUP(inet_ntoa, (struct in_addr address), (address))
HIROBA_TEXT_LOOKUP(getlogin, (), ())
HIROBA_TEXT_LOOKUP(getpass, (const char* prompt), (prompt))

HIROBA_LOOKUP(struct sgrp, getsgnam, (const char* name), (name))
HIROBA_LOOKUP(struct sgrp, sgetsgent, (const char* text), (text))
HIROBA_LOOKUP(struct sgrp, fgetsgent, (FILE * from), (near(from)))
HIROBA_LOOKUP(struct rpcent, getrpcbyname, (const char* name), (name))
HIROBA_LOOKUP(struct rpcent, getrpcbynumber, (int number), (number))
HIROBA_LOOKUP(struct aliasent, getaliasbyname, (const char* name), (name))
HIROBA_LOOKUP(struct ttyent, getttynam, (const char* name), (name))
HIROBA_LOOKUP(struct utmpx, pututxline, (const struct utmpx* line), (line))
HIROBA_LOOKUP(struct utmp, getutid, (const struct utmp* like), (like))
HIROBA_LOOKUP(struct utmp, getutline, (const struct utmp* like), (like))
HIROBA_LOOKUP(struct utmp, pututline, (const struct utmp* line), (line))
HIROBA_LOOKUP(struct tm, getdate, (const char* text), (text))
HIROBA_TEXT_LOOKUP(qecvt, (long double value, int digits, int* point, int* sign),
                   (value, digits, point, sign))
HIROBA_TEXT_LOOKUP(qfcvt, (long double value, int digits, int* point, int* sign),
                   (value, digits, point, sign))
HIROBA_TEXT_LOOKUP(inet_nsap_ntoa, (int bytes, const unsigned char* address, char* room),
                   (bytes, address, room))
HIROBA_TEXT_LOOKUP(crypt, (const char* phrase, const char* setting), (phrase, setting))

HIROBA_ENUMERATION(0, struct passwd, getpwent, setpwent, endpwent, (), (), ())
HIROBA_ENUMERATION(1, struct group, getgrent, setgrent, endgrent, (), (), ())
HIROBA_ENUMERATION(2, struct spwd, getspent, setspent, endspent, (), (), ())
HIROBA_ENUMERATION(3, struct sgrp, getsgent, setsgent, endsgent, (), (), ())
HIROBA_ENUMERATION(4, struct utmpx, getutxent, setutxent, endutxent, (), (), ())
HIROBA_ENUMERATION(5, struct utmp, getutent, setutent, endutent, (), (), ())
HIROBA_ENUMERATION(6, struct fstab, getfsent, setfsent, endfsent, (), (), ())
HIROBA_ENUMERATION(7, struct ttyent, getttyent, setttyent, endttyent, (), (), ())
HIROBA_ENUMERATION(8, struct aliasent, getaliasent, setaliasent, endaliasent, (), (), ())
HIROBA_ENUMERATION(9, char, getusershell, setusershell, endusershell, (), (), ())
HIROBA_ENUMERATION_KEPT_OPEN(10, struct hostent, gethostent, sethostent, endhostent)
HIROBA_ENUMERATION_KEPT_OPEN(11, struct servent, getservent, setservent, endservent)
HIROBA_ENUMERATION_KEPT_OPEN(12, struct protoent, getprotoent, setprotoent, endprotoent)
HIROBA_ENUMERATION_KEPT_OPEN(13, struct netent, getnetent, setnetent, endnetent)
HIROBA_ENUMERATION_KEPT_OPEN(14, struct rpcent, getrpcent, setrpcent, endrpcent)

}  // extern "C"
