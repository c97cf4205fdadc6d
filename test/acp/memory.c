/* SPDX-License-Identifier: BSD-3-Clause
   Role: prints how much memory one rank uses, step by step: what is resident, private and shared,
   more than before acp_init. Usage: memory [OUTSTANDING]. */
#include <string.h>

#include "check.h"

static long resident_kib(void) {
    long kib = 0, value;
    char line[200];
    FILE* file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "RssAnon: %ld", &value) == 1) kib += value;
        if (sscanf(line, "RssShmem: %ld", &value) == 1) kib += value;
    }
    fclose(file);
    return kib;
}

static void say(const char* what, long before) {
    acp_sync();
    if (acp_rank() == 0) printf("%-56s %8ld KiB\n", what, resident_kib() - before);
    acp_sync();
}

int main(int argc, char** argv) {
    const int outstanding = argc > 1 ? atoi(argv[1]) : 4096;
    static char memory[65536];
    memset(memory, 1, sizeof memory);
    resident_kib();
    const long before = resident_kib();
    if (acp_init(&argc, &argv) != 0) return 1;
    say("after acp_init and two barriers", before);
    uint64_t all[64];
    const acp_ga_t at = acp_query_ga(acp_register_memory(memory, sizeof memory, 0), memory);
    exchange(at, all, 0);
    say("every rank talked to", before);
    for (int i = 0; i < outstanding; ++i) {
        const int to = (acp_rank() + 1 + i % (acp_procs() > 1 ? acp_procs() - 1 : 1)) % acp_procs();
        acp_copy(all[to] + 8 * (uint64_t)(i % 4096), at + 32768, 8, (acp_handle_t)ACP_HANDLE_NULL);
    }
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    say("as many copies of 8 bytes at once as the queue holds", before);
    for (int i = 0; i < 100; ++i) {
        acp_register_memory(memory + i, 1, 0);
    }
    say("100 registrations", before);
    if (acp_rank() == 0) printf("memory of %d ranks: told\n", acp_procs());
    return acp_finalize();
}
