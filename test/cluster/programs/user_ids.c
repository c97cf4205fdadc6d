// SPDX-License-Identifier: BSD-3-Clause
// A program that gives up rights and takes them back between regions acts as the same user and
// groups on every node. Run by another user than root it has no rights to give up.
#define _GNU_SOURCE
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "verdict.h"

enum { nobody = 65534 };

static void everyone_is(const char* who, uid_t user, gid_t group, int further) {
    long others = 0, opened = 0;
#pragma omp parallel reduction(+ : others, opened)
    {
        others += geteuid() != user || getegid() != group;
        others += further >= 0 && getgroups(0, NULL) != further;
        FILE* const secret = fopen("/etc/shadow", "r");
        if (secret != NULL) fclose(secret);
        opened += (secret != NULL) != (user == 0);
    }
    check_equal(who, others, 0);
    if (user == 0 || user == nobody) check_equal("and may what that one may", opened, 0);
}

int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "region") == 0) {
#pragma omp parallel
        if (omp_get_thread_num() == omp_get_num_threads() - 1) seteuid(nobody);
        puts("went on");
        return 0;
    }
    everyone_is("all are who started it", geteuid(), getegid(), -1);
    if (geteuid() != 0) return 0;
    const gid_t further[] = {5, 6, 7};
    check("groups are set", setgroups(3, further) == 0);
    everyone_is("all are root with three groups", 0, 0, 3);
    check("rights are laid down", setegid(nobody) == 0 && seteuid(nobody) == 0);
    everyone_is("all are nobody", nobody, nobody, 3);
    check("and taken back", seteuid(0) == 0 && setegid(0) == 0);
    everyone_is("all are root again", 0, 0, 3);
    check("rights are given up",
          setgroups(0, NULL) == 0 && setresgid(nobody, nobody, nobody) == 0 && setuid(nobody) == 0);
    everyone_is("all are nobody for good", nobody, nobody, 0);
    check("there is no way back", seteuid(0) != 0);
    return wrong;
}
