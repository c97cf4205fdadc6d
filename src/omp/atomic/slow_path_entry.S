# SPDX-License-Identifier: BSD-3-Clause
# Role: the seam between trampolines and C++: called in the middle of the program's code, where
# every register is live. rdi and rsi are the trampoline's own; rax carries the result.
# Invariant: all else is restored, ZMM and mask registers included where the object may have something
# in them (hooks use them: memcpy, merge). Only, when `before` answers true, the vectors stay in the trampoline's room until `after` restores
# them: no locked instruction touches one, and each save and restore costs a tenth of a microsecond.

    .text

    # Stack: return address, the trampoline's rsi, its room (vector_room_bytes()).
    # r12 = the save area in the room, ebx = the components of xsave, 0: fxsave.
    .macro  enter_hook
    endbr64
    push    %rbp
    mov     %rsp, %rbp
    pushfq
    push    %rcx
    push    %rdx
    push    %r8
    push    %r9
    push    %r10
    push    %r11
    push    %rbx
    push    %r12
    cld
    lea     24 + 63(%rbp), %r12
    and     $-64, %r12
    and     $-16, %rsp
    mov     hiroba_vector_mask(%rip), %ebx
    .endm

    .macro  leave_hook
    lea     -72(%rbp), %rsp
    pop     %r12
    pop     %rbx
    pop     %r11
    pop     %r10
    pop     %r9
    pop     %r8
    pop     %rdx
    pop     %rcx
    popfq
    pop     %rbp
    ret
    .endm

    # Uses rcx, rdx; keeps rax.
    .macro  restore_vectors
    mov     %rax, %rcx
    test    %ebx, %ebx
    jz      5f
    mov     %ebx, %eax
    xor     %edx, %edx
    xrstor64 (%r12)
    jmp     6f
5:
    fxrstor64 (%r12)
6:
    mov     %rcx, %rax
    .endm

    .globl  hiroba_atomic_before
    .hidden hiroba_atomic_before
    .type   hiroba_atomic_before, @function
hiroba_atomic_before:
    enter_hook
    test    %ebx, %ebx
    jz      1f
    # xrstor refuses a header with stray bits; xsave writes only part of it.
    xor     %eax, %eax
    .irp    offset, 512, 520, 528, 536, 544, 552, 560, 568
    mov     %rax, \offset(%r12)
    .endr
    mov     %ebx, %eax
    xor     %edx, %edx
    cmpb    $0, hiroba_vector_compact(%rip)
    je      2f
    # Writes only what is in use: a fifth of the bytes in a program without AVX-512.
    xsavec64 (%r12)
    jmp     3f
2:
    xsave64 (%r12)
    jmp     3f
1:
    fxsave64 (%r12)
3:
    lea     24(%rbp), %rdx
    call    hiroba_atomic_enter
    test    %al, %al
    jnz     4f
    restore_vectors
4:
    leave_hook
    .size   hiroba_atomic_before, . - hiroba_atomic_before

    .globl  hiroba_atomic_after
    .hidden hiroba_atomic_after
    .type   hiroba_atomic_after, @function
hiroba_atomic_after:
    enter_hook
    call    hiroba_atomic_leave
    restore_vectors
    leave_hook
    .size   hiroba_atomic_after, . - hiroba_atomic_after

    # For objects that use xmm0 to xmm15 at most (VectorUse::xmm): sixteen stores and loads instead
    # of xsave and xrstor, which together cost half of an atomic. The upper halves come back as the
    # hooks leave them; nothing of the object can tell.
    .macro  save_xmm
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  %xmm\n, 16 * \n(%r12)
    .endr
    .endm

    .macro  restore_xmm
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  16 * \n(%r12), %xmm\n
    .endr
    .endm

    .globl  hiroba_atomic_before_xmm
    .hidden hiroba_atomic_before_xmm
    .type   hiroba_atomic_before_xmm, @function
hiroba_atomic_before_xmm:
    enter_hook
    save_xmm
    lea     24(%rbp), %rdx
    call    hiroba_atomic_enter
    test    %al, %al
    jnz     7f
    restore_xmm
7:
    leave_hook
    .size   hiroba_atomic_before_xmm, . - hiroba_atomic_before_xmm

    .globl  hiroba_atomic_after_xmm
    .hidden hiroba_atomic_after_xmm
    .type   hiroba_atomic_after_xmm, @function
hiroba_atomic_after_xmm:
    enter_hook
    call    hiroba_atomic_leave
    restore_xmm
    leave_hook
    .size   hiroba_atomic_after_xmm, . - hiroba_atomic_after_xmm

    .section .note.GNU-stack, "", @progbits
