# SPDX-License-Identifier: BSD-3-Clause
# Role: the seam between trampolines and C++: called in the middle of the program's code, where
# every register is live. rdi and rsi are the trampoline's own; rax carries the result.
# Invariant: all else is restored, ZMM and mask registers included where the object may have something
# in them (hooks use them: memcpy, merge). Only, when `before` answers true, the vectors stay in the trampoline's room until `after` restores
# them: no locked instruction touches one, and each save and restore costs a tenth of a microsecond. What comes first
# (slow_path_own.cpp) touches none, and most often that is all: then the vectors are saved nowhere.
# `before` hands hiroba_atomic_enter what it saved: rdx = the general registers (HookFrame, slow_path.cpp),
# rcx = xmm0 and those behind it, 0: all are zero.

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
    push    %r13
    push    %r14
    push    %r15
    cld
    lea     24 + 63(%rbp), %r12
    and     $-64, %r12
    and     $-16, %rsp
    mov     hiroba_vector_mask(%rip), %ebx
    mov     %rdi, %r13
    mov     %rsi, %r14
    .endm

    # Whether the vectors have stayed the program's, in bytes that no form of xsave or fxsave writes.
    .set    vectors_are_live, 464

    # Before the vectors are saved: the section is entered and they stay, or this goes on.
    .macro  enter_own
    call    hiroba_atomic_enter_own
    movzbl  %al, %eax
    mov     %al, vectors_are_live(%r12)
    mov     %r13, %rdi
    mov     %r14, %rsi
    .endm

    # Left without saving them; al = 0: not yet.
    .macro  leave_own
    call    hiroba_atomic_leave_own
    mov     %r13, %rdi
    mov     %r14, %rsi
    .endm

    # In the second byte of the flags.
    .set    direction_flag, 4

    # Takes the flags off the stack. Of those that a hook changes the trampoline keeps all but the
    # direction, which cld may have changed; popfq takes longer than all else here.
    .macro  restore_flags
    testb   $direction_flag, 1(%rsp)
    jnz     14f
    lea     8(%rsp), %rsp
    jmp     15f
14:
    popfq
15:
    .endm

    .macro  leave_hook
    lea     -96(%rbp), %rsp
    pop     %r15
    pop     %r14
    pop     %r13
    pop     %r12
    pop     %rbx
    pop     %r11
    pop     %r10
    pop     %r9
    pop     %r8
    pop     %rdx
    pop     %rcx
    restore_flags
    pop     %rbp
    ret
    .endm

    # Uses rax, rcx, rdx.
    .macro  save_vectors
    test    %ebx, %ebx
    jz      11f
    # xrstor refuses a header with stray bits; xsave writes only part of it.
    xor     %eax, %eax
    .irp    offset, 512, 520, 528, 536, 544, 552, 560, 568
    mov     %rax, \offset(%r12)
    .endr
    mov     %ebx, %eax
    xor     %edx, %edx
    cmpb    $0, hiroba_vector_compact(%rip)
    je      12f
    # Writes only what is in use: a fifth of the bytes in a program without AVX-512.
    xsavec64 (%r12)
    jmp     13f
12:
    xsave64 (%r12)
    jmp     13f
11:
    fxsave64 (%r12)
13:
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

    # The vectors are saved where they have not been yet and leaving takes more.
    .macro  after_hook save, restore
    enter_hook
    leave_own
    test    %al, %al
    jz      1f
    cmpb    $0, vectors_are_live(%r12)
    jne     3f
    jmp     2f
1:
    cmpb    $0, vectors_are_live(%r12)
    je      4f
    \save
    mov     %r13, %rdi
    mov     %r14, %rsi
4:
    call    hiroba_atomic_leave
2:
    \restore
3:
    leave_hook
    .endm

    .globl  hiroba_atomic_before
    .hidden hiroba_atomic_before
    .type   hiroba_atomic_before, @function
hiroba_atomic_before:
    enter_hook
    enter_own
    test    %al, %al
    jnz     4f
    save_vectors
    lea     -96(%rbp), %rdx
    lea     160(%r12), %rcx
    test    %ebx, %ebx
    jz      7f
    # Of what is as at the start xsave keeps no more than a zero in its header.
    testb   $2, 512(%r12)
    jnz     7f
    xor     %ecx, %ecx
7:
    call    hiroba_atomic_enter
    cmp     $1, %al
    je      4f
    restore_vectors
4:
    leave_hook
    .size   hiroba_atomic_before, . - hiroba_atomic_before

    .globl  hiroba_atomic_after
    .hidden hiroba_atomic_after
    .type   hiroba_atomic_after, @function
hiroba_atomic_after:
    after_hook save_vectors, restore_vectors
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
    enter_own
    test    %al, %al
    jnz     7f
    save_xmm
    lea     -96(%rbp), %rdx
    mov     %r12, %rcx
    call    hiroba_atomic_enter
    cmp     $1, %al
    je      7f
    restore_xmm
7:
    leave_hook
    .size   hiroba_atomic_before_xmm, . - hiroba_atomic_before_xmm

    .globl  hiroba_atomic_after_xmm
    .hidden hiroba_atomic_after_xmm
    .type   hiroba_atomic_after_xmm, @function
hiroba_atomic_after_xmm:
    after_hook save_xmm, restore_xmm
    .size   hiroba_atomic_after_xmm, . - hiroba_atomic_after_xmm

    .section .note.GNU-stack, "", @progbits
