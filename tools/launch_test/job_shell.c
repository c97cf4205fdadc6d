// SPDX-License-Identifier: BSD-3-Clause
// Role: what a shell does with one job on its terminal: gives it the terminal, takes it back when
// the job stops, continues it when a line is typed, and ends with its status.
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    signal(SIGTTOU, SIG_IGN);
    const pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
        execv(argv[1], argv + 1);
        _exit(2);
    }
    setpgid(job, job);
    tcsetpgrp(STDIN_FILENO, job);
    for (;;) {
        int status;
        if (waitpid(job, &status, WUNTRACED) != job) return 2;
        if (WIFEXITED(status)) return WEXITSTATUS(status);
        if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
        tcsetpgrp(STDIN_FILENO, getpgrp());
        printf("job stopped\n");
        fflush(stdout);
        if (getchar() == EOF) return 2;
        tcsetpgrp(STDIN_FILENO, job);
        kill(-job, SIGCONT);
    }
}
