/* SPDX-License-Identifier: BSD-3-Clause
   Role: every bad input, and that the job goes on after it; then what ends the job.
   Usage: refusals [past_end | unregistered | abort | abort_without_error | no_finalize | killed].
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const acp_handle_t none = (acp_handle_t)ACP_HANDLE_NULL;

static int real_stderr, said;

/* What is written to stderr goes to a file, until heard() looks for `words` in it. */
static void listen(void) {
    if (ftruncate(said, 0) != 0 || lseek(said, 0, SEEK_SET) != 0 || dup2(said, 2) < 0) abort();
    errno = 0;
}

static void heard(int failed_as_documented, const char* call, const char* words) {
    static char line[1024];
    const int number = errno;
    dup2(real_stderr, 2);
    const ssize_t bytes = pread(said, line, sizeof line - 1, 0);
    line[bytes > 0 ? bytes : 0] = 0;
    CHECK(failed_as_documented && number == EINVAL, "%s: errno %d, said: %s", call, number, line);
    const char* const end = strchr(line, '\n');
    CHECK(strstr(line, words) != NULL && end != NULL && end[1] == 0,
          "%s: wanted one line with \"%s\", said: %s", call, words, line);
}

/* The documented failure, errno, and one line that names the argument and the number. */
#define REFUSED(call, failure, words)           \
    do {                                        \
        listen();                               \
        const int failed = (call) == (failure); \
        heard(failed, #call, words);            \
    } while (0)

/* Memory that adjoins or overlaps has keys of its own, each with an end of its own. */
static void neighbours(acp_ga_t other) {
    static uint64_t words[8];
    const acp_atkey_t left = acp_register_memory(words, 32, 0);
    const acp_atkey_t right = acp_register_memory(words + 4, 32, 0);
    const acp_atkey_t across = acp_register_memory(words + 2, 32, 0);
    CHECK(left != right && left != across && right != across, "%lx %lx", (long)left, (long)right);
    REFUSED(
        acp_copy(other + 64, acp_query_ga(left, words + 3), 16, none), none,
        "is not inside one live registration of its rank: it is 24 + 16 of a registration of 32 "
        "bytes");
    REFUSED(acp_query_ga(left, words + 4), ACP_GA_NULL, "has no byte at 0x");
    CHECK(acp_query_address(acp_query_ga(across, words + 4)) == words + 4, "across");
    acp_complete(acp_copy(other + 64, acp_query_ga(across, words + 3), 16, none));
    const acp_ga_t gone = acp_query_ga(left, words);
    CHECK(acp_unregister_memory(left) == 0, "left");
    REFUSED(acp_copy(other + 64, gone, 8, none), none, "is not inside one live registration");
    acp_complete(acp_copy(other + 64, acp_query_ga(right, words + 4), 32, none));
    CHECK(acp_unregister_memory(right) == 0 && acp_unregister_memory(across) == 0, "the others");
}

static void arguments(void) {
    static uint64_t words[4];
    const int ranks = acp_procs(), next = (acp_rank() + 1) % ranks;
    const acp_ga_t mine = acp_query_starter_ga(acp_rank()), other = acp_query_starter_ga(next);
    const uint64_t starter_bytes = 65536;
    REFUSED(acp_init(NULL, NULL), -1, "acp_init: this process is in a job already");
    REFUSED(acp_query_starter_ga(ranks), ACP_GA_NULL, "acp_query_starter_ga: rank ");
    REFUSED(acp_query_starter_ga(-1), ACP_GA_NULL, "acp_query_starter_ga: rank -1 of a job of");
    REFUSED(acp_register_memory(words, 0, 0), ACP_ATKEY_NULL,
            "acp_register_memory: a registration of 0 bytes");
    REFUSED(acp_register_memory(NULL, 8, 0), ACP_ATKEY_NULL, "at address 0");
    REFUSED(acp_register_memory((void*)65536, 8, 0), ACP_ATKEY_NULL,
            "memory at 0x10000 of 8 bytes is not mapped in this process");
    REFUSED(acp_register_memory(words, (size_t)1 << 46, 0), ACP_ATKEY_NULL, "is not mapped");
    REFUSED(acp_register_memory(words, ~(size_t)0, 0), ACP_ATKEY_NULL, "wraps around");
    REFUSED(acp_register_memory(words, 8, acp_colors()), ACP_ATKEY_NULL, "color 1; there are 1");
    REFUSED(acp_register_memory(words, 8, -1), ACP_ATKEY_NULL, "color -1; there are 1");
    REFUSED(acp_unregister_memory(ACP_ATKEY_NULL), -1,
            "acp_unregister_memory: key 0x0 is not registered here");
    REFUSED(acp_unregister_memory(mine), -1, "is not registered here");

    const acp_atkey_t key = acp_register_memory(words, sizeof words, 0);
    CHECK(acp_register_memory(words, sizeof words, 0) == key, "the same memory, another key");
    const acp_ga_t at = acp_query_ga(key, words + 1);
    CHECK(acp_query_address(at) == words + 1 && acp_query_rank(at) == acp_rank(), "%lx", (long)at);
    CHECK(acp_query_color(at) == 0, "color %d", acp_query_color(at));
    REFUSED(acp_query_ga(key, words + 4), ACP_GA_NULL, "has no byte at 0x");
    REFUSED(acp_query_ga(key + 8, words), ACP_GA_NULL, "acp_query_ga: key 0x");
    REFUSED(acp_query_address(ACP_GA_NULL), NULL, "acp_query_address: ga: global address 0x0");
    if (next != acp_rank()) REFUSED(acp_query_address(other), NULL, "not of this one");
    REFUSED(acp_query_rank(ACP_GA_NULL), -1, "acp_query_rank: global address 0x0 names no memory");
    REFUSED(acp_query_rank(~0ull), -1, "0xffffffffffffffff names no memory");
    REFUSED(acp_query_color(ACP_GA_NULL), -1,
            "acp_query_color: global address 0x0 names no memory");

    REFUSED(acp_copy(ACP_GA_NULL, mine, 8, none), none,
            "acp_copy: dst: global address 0x0 of 8 bytes is the null address");
    REFUSED(acp_copy(mine, ACP_GA_NULL, 8, none), none,
            "acp_copy: src: global address 0x0 of 8 bytes is the null address");
    REFUSED(acp_copy(mine, ~0ull, 8, none), none,
            "src: global address 0xffffffffffffffff of 8 bytes names a rank outside the job");
    REFUSED(acp_copy(mine, 8, 8, none), none,
            "src: global address 0x8 of 8 bytes names no segment");
    REFUSED(acp_copy(other, mine + starter_bytes - 7, 8, none), none,
            "past the end of the starter memory");
    REFUSED(acp_copy(other + starter_bytes - 7, mine, 8, none), none, "dst: global address");
    REFUSED(acp_copy(other, at, sizeof words, none), none,
            "of 32 bytes is not inside one live registration");
    REFUSED(acp_copy(other, at, ~(size_t)0, none), none, "dst: global address");
    REFUSED(acp_copy(other, mine, 8, -3), none, "order: -3 is no handle");
    REFUSED(acp_add8(mine, other + 4, 1, none), none, "acp_add8: src: global address");
    REFUSED(acp_add8(mine + 4, other, 1, none), none, "acp_add8: dst: global address");
    REFUSED(acp_add4(mine, other + 2, 1, none), none,
            "is no multiple of the 4 bytes of the atomic");
    REFUSED(acp_cas8(mine, ACP_GA_NULL, 1, 1, none), none, "acp_cas8: src: global address 0x0");

    neighbours(other);
    const acp_handle_t empty = acp_copy(other, mine, 0, none);
    CHECK(empty > 0 && acp_inquire(empty) == 0, "a copy of nothing");
    acp_complete(0);
    acp_complete(empty + 1000);
    CHECK(acp_inquire(empty + 1000) == 0 && acp_inquire(-5) == 0, "handles never issued");
    /* Ordered behind a handle that was never issued: there is nothing to wait for. */
    acp_complete(acp_copy(other + 8, mine, 8, empty + 100000));

    CHECK(acp_unregister_memory(key) == 0, "first of two");
    CHECK(acp_query_ga(key, words) == key, "still registered once");
    CHECK(acp_unregister_memory(key) == 0, "second of two");
    REFUSED(acp_unregister_memory(key), -1, "is not registered here");
    REFUSED(acp_query_ga(key, words), ACP_GA_NULL, "is not registered here");
    REFUSED(acp_copy(other, at, 8, none), none, "is not inside one live registration");
    acp_sync();
}

/* Ranks turned by one; starter memory is cleared, keys are gone, and it all works again. */
static void lives(void) {
    const int rank = acp_rank(), ranks = acp_procs();
    static uint64_t word;
    const acp_atkey_t key = acp_register_memory(&word, 8, 0);
    if (ranks == 1) {
        CHECK(acp_reset(0) == 0 && acp_rank() == 0, "reset alone");
        return;
    }
    REFUSED(acp_reset(0), -1, "acp_reset: the new ranks are no permutation: 0 is wanted by two");
    REFUSED(acp_reset(ranks - rank), -1, "acp_reset: the new ranks are no permutation:");
    CHECK(acp_rank() == rank && acp_query_ga(key, &word) == key, "changed by a refused reset");
    uint64_t* starter = acp_query_address(acp_query_starter_ga(rank));
    *starter = 5;
    acp_sync();
    CHECK(acp_reset((rank + 1) % ranks) == 0, "reset");
    CHECK(acp_rank() == (rank + 1) % ranks && acp_procs() == ranks, "rank %d", acp_rank());
    REFUSED(acp_unregister_memory(key), -1, "is not registered here");
    starter = acp_query_address(acp_query_starter_ga(acp_rank()));
    CHECK(*starter == 0, "starter memory keeps %ld", (long)*starter);
    acp_sync(); /* before others write there */
    uint64_t all[16];
    exchange((uint64_t)(100 + acp_rank()), all, 0);
    for (int i = 0; i < ranks; ++i) CHECK(all[i] == 100u + (unsigned)i, "%d: %ld", i, (long)all[i]);
    CHECK(acp_query_rank(acp_query_starter_ga(1)) == 1, "rank of an address");
    CHECK(acp_finalize() == 0, "finalize");
    errno = 0;
    CHECK(acp_rank() == -1 && errno == EPERM && acp_sync() == -1 && acp_finalize() == -1, "dead");
    CHECK(acp_init(NULL, NULL) == 0 && acp_rank() == rank, "rank %d again", acp_rank());
    exchange((uint64_t)(200 + rank), all, 0);
    for (int i = 0; i < ranks; ++i) CHECK(all[i] == 200u + (unsigned)i, "%d: %ld", i, (long)all[i]);
}

/* What its owner alone can refuse ends the job. */
static void ends_the_job(const char* what) {
    static uint64_t words[2];
    uint64_t all[16];
    const acp_atkey_t key = acp_register_memory(words, sizeof words, 0);
    exchange(acp_query_ga(key, words), all, 0);
    if (strcmp(what, "unregistered") == 0) acp_unregister_memory(key);
    acp_sync();
    if (acp_rank() == 0 && strcmp(what, "abort") == 0) {
        errno = ENOENT;
        acp_abort("the text of the program");
    }
    if (acp_rank() == 0 && strcmp(what, "abort_without_error") == 0) {
        errno = 0;
        acp_abort("no error");
    }
    if (acp_rank() == 0 && strcmp(what, "no_finalize") == 0) exit(0);
    if (acp_rank() == 1 && strcmp(what, "killed") == 0) raise(SIGKILL);
    while (strcmp(what, "killed") == 0) acp_sync();
    if (acp_rank() == 0) acp_complete(acp_copy(all[1] + 8, acp_query_starter_ga(0), 16, none));
    acp_sync();
}

int main(int argc, char** argv) {
    if (acp_sync() != -1 || errno != EPERM) return 1;
    real_stderr = dup(2);
    char name[] = "/tmp/hiroba_refusals_XXXXXX";
    said = mkstemp(name);
    if (said < 0 || unlink(name) != 0) return 1;
    if (acp_init(&argc, &argv) != 0) return 1;
    if (argc > 1) ends_the_job(argv[1]);
    arguments();
    lives();
    if (acp_rank() == 0) printf("refused and alive\n");
    return acp_finalize();
}
