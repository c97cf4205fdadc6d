// SPDX-License-Identifier: BSD-3-Clause
// What a program locks itself in by, so that its threads can do less: each in its own way. On
// several nodes it would hold on one alone, so it is refused before anything is printed.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <omp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/// A filter that refuses mkdir() alone.
static struct sock_fprog* without_mkdir(void) {
    static struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    static struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    return &program;
}

static int lock_in(const char* how) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (strcmp(how, "prctl") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, without_mkdir());
    if (strcmp(how, "seccomp") == 0)
        return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, without_mkdir());
    if (strcmp(how, "landlock") == 0) return (int)syscall(446, -1, 0);
    if (strcmp(how, "unshare") == 0) return unshare(CLONE_FS);
    if (strcmp(how, "setns") == 0) return setns(-1, 0);
    if (strcmp(how, "chroot") == 0) return chroot("/");
    if (strcmp(how, "pivot_root") == 0) return (int)syscall(SYS_pivot_root, "/", "/");
    if (strcmp(how, "capabilities") == 0) return prctl(PR_CAPBSET_DROP, 0, 0, 0, 0);
    // Asking whether there are filters locks nobody in.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT;
}

int main(int argc, char** argv) {
    lock_in(argc > 1 ? argv[1] : "");
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    printf("%d threads\n", threads);
    return 0;
}
