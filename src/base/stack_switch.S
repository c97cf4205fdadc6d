// SPDX-License-Identifier: BSD-3-Clause
// Role: hiroba_call_on_stack(function, argument, stack_top): calls function(argument) on another
// stack and comes back. The frame pointer, kept by every callee, remembers the former stack, so
// that the CFI below holds at each instruction and debuggers walk through the switch.
#include "base/call_frame.inc"

    .text
    begin_call_frame hiroba_call_on_stack
    movq    %rdx, %rsp
    andq    $-16, %rsp
    movq    %rdi, %rax
    movq    %rsi, %rdi
    callq   *%rax
    end_call_frame hiroba_call_on_stack
    .section .note.GNU-stack, "", @progbits
