# A node's first access to a page is a signal that the runtime handles: gdb must let it through.
# gdb -x .gdbinit -p PID; or copy these lines to ~/.gdbinit.
handle SIGBUS nostop noprint pass
handle SIGSEGV nostop noprint pass
# System calls of the program are examined by a signal, too.
handle SIGSYS nostop noprint pass
set print thread-events off
