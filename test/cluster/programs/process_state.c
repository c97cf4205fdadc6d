// SPDX-License-Identifier: BSD-3-Clause
// What main changes in its process between regions (directory, umask, locale, environment, actions
// of signals) every thread of the next region finds, and finds again after it changed once more.
#include <errno.h>
#include <locale.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { threads_max = 64 };
static int seen[threads_max];
static _Thread_local volatile sig_atomic_t caught;

static void on_user(int number) { caught += number == SIGUSR2; }
static void on_arithmetic(int number) { caught += 100 * (number == SIGFPE); }

struct Report {
    char directory[256], locale[128], first[64], second[64], third[64];
    int mask, same_file, caught;
};

static mode_t mask_of_process(void) {
    const mode_t mask = umask(0);
    umask(mask);
    return mask;
}

static void look(struct Report* report, int me) {
    memset(report, 0, sizeof *report);
    if (getcwd(report->directory, sizeof report->directory) == NULL) report->directory[0] = '?';
    strncpy(report->locale, setlocale(LC_ALL, NULL), sizeof report->locale - 1);
    const char* const names[] = {"FIRST", "SECOND", "THIRD"};
    char* const values[] = {report->first, report->second, report->third};
    for (int i = 0; i < 3; ++i) {
        const char* const value = getenv(names[i]);
        strncpy(values[i], value ? value : "(not set)", 63);
    }
    report->same_file = access("marker", F_OK) == 0;
    caught = 0;
    raise(SIGUSR2);
    raise(SIGFPE);
    report->caught = caught;
    seen[me] = 1;
}

static void round_of_threads(const char* title) {
    static struct Report reports[threads_max];
    memset(seen, 0, sizeof seen);
    int size = 0;
#pragma omp parallel
    {
#pragma omp single
        size = omp_get_num_threads();
        look(&reports[omp_get_thread_num()], omp_get_thread_num());
        // One at a time: umask has no other way to be read than to be set.
#pragma omp critical
        reports[omp_get_thread_num()].mask = (int)mask_of_process();
    }
    int equal = 0;
    for (int i = 0; i < size; ++i)
        equal += seen[i] && memcmp(&reports[i], &reports[0], sizeof reports[0]) == 0;
    const struct Report* const one = &reports[size - 1];
    printf(
        "%s: %d of %d threads agree: %s, %s, umask %o, FIRST=%s SECOND=%s THIRD=%s, marker %d, "
        "caught %d\n",
        title, equal, size, strrchr(one->directory, '/'), one->locale, (unsigned)one->mask,
        one->first, one->second, one->third, one->same_file, one->caught);
}

int main(void) {
    char directory[] = "/tmp/state.XXXXXX";
    if (mkdtemp(directory) == NULL || chdir(directory) != 0) return 99;
    mkdir("place", 0755);
    signal(SIGUSR2, on_user);
    signal(SIGFPE, SIG_IGN);
    umask(022);
    setenv("FIRST", "one", 1);
    if (chdir("place") != 0) return 98;
    fclose(fopen("marker", "w"));
    round_of_threads("set");

    static char text[] = "SECOND=put";
    putenv(text);
    setenv("FIRST", "not this", 0);
    setlocale(LC_ALL, "C.UTF-8");
    signal(SIGFPE, on_arithmetic);
    umask(027);
    round_of_threads("changed");

    unsetenv("FIRST");
    text[7] = 'P';
    for (int i = 0; i < 100; ++i) {
        char name[32];
        snprintf(name, sizeof name, "MANY_%d", i);
        setenv(name, "x", 1);
    }
    setenv("THIRD", "three", 1);
    remove("marker");
    if (chdir("..") != 0) return 97;
    rmdir("place");
    signal(SIGUSR2, SIG_IGN);
    setlocale(LC_NUMERIC, "C");
    // The end of the temporary directory's name differs from run to run.
    if (chdir("/usr/bin") != 0) return 96;
    rmdir(directory);
    round_of_threads("changed again");

    clearenv();
    round_of_threads("cleared");
    printf("errors as ever: %d %d %d\n", setenv("", "x", 1) == -1 && errno == EINVAL,
           setenv("a=b", "x", 1) == -1, unsetenv("") == -1);
    return 0;
}
