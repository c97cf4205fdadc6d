! SPDX-License-Identifier: BSD-3-Clause
! Role: the C face as a Fortran module: hiroba/hiroba.h has the contracts, call by call, under the same names.
!
! Compile it with the program: gfortran $(pkg-config --variable=includedir hiroba_c)/hiroba/hiroba.f90 program.f90
! $(pkg-config --libs hiroba_c). Memory is given by c_loc() of a target, where C may take NULL by c_null_ptr. Fortran has
! no unsigned integers: those of C are the signed ones of the same size. A handler of messages is a procedure with
! bind(c), given by c_funloc().
module hiroba
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: HIROBA_OK = 0
    integer(c_int), parameter :: HIROBA_REFUSED = 1
    integer(c_int), parameter :: HIROBA_NO_JOB = 2
    integer(c_int), parameter :: HIROBA_NO_MEMORY = 3
    integer(c_int), parameter :: HIROBA_PEER_LOST = 4
    integer(c_int), parameter :: HIROBA_BUSY = 5

    integer(c_int), parameter :: HIROBA_ADD = 0
    integer(c_int), parameter :: HIROBA_AND = 1
    integer(c_int), parameter :: HIROBA_OR = 2
    integer(c_int), parameter :: HIROBA_XOR = 3
    integer(c_int), parameter :: HIROBA_SWAP = 4
    integer(c_int), parameter :: HIROBA_COMPARE_SWAP = 5
    integer(c_int), parameter :: HIROBA_MIN = 6
    integer(c_int), parameter :: HIROBA_MAX = 7

    integer(c_int), parameter :: HIROBA_INT32 = 0
    integer(c_int), parameter :: HIROBA_INT64 = 1
    integer(c_int), parameter :: HIROBA_FLOAT = 2
    integer(c_int), parameter :: HIROBA_DOUBLE = 3

    integer(c_int), parameter :: HIROBA_EQUAL = 0
    integer(c_int), parameter :: HIROBA_NOT_EQUAL = 1
    integer(c_int), parameter :: HIROBA_LESS = 2
    integer(c_int), parameter :: HIROBA_LESS_EQUAL = 3
    integer(c_int), parameter :: HIROBA_GREATER = 4
    integer(c_int), parameter :: HIROBA_GREATER_EQUAL = 5

    integer(c_int), parameter :: HIROBA_BLOCK = 0
    integer(c_int), parameter :: HIROBA_CYCLIC = 1
    integer(c_int), parameter :: HIROBA_ON_RANK = 2

    !> Where pages of the relocatable space are at first. Its default: by block, may move.
    type, bind(c) :: hiroba_distribution
        integer(c_int32_t) :: kind = HIROBA_BLOCK
        integer(c_int32_t) :: rank = 0
        integer(c_int64_t) :: block_bytes = 0
        integer(c_int32_t) :: fixed = 0
        integer(c_int32_t) :: zero = 0
    end type

    !> Memory that one rank has exposed.
    type, bind(c) :: hiroba_exposed
        integer(c_int32_t) :: rank = 0
        integer(c_int32_t) :: kind = 0
        integer(c_int64_t) :: number = 0
        integer(c_int64_t) :: bytes = 0
    end type

    interface
        ! --- what calls end with

        type(c_ptr) function hiroba_strerror(code) bind(c)
            import :: c_int, c_ptr
            integer(c_int), value :: code
        end function
        type(c_ptr) function hiroba_last_error() bind(c)
            import :: c_ptr
        end function
        ! --- net

        integer(c_int) function hiroba_net_open(net) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: net
        end function
        integer(c_int) function hiroba_net_allocate(net, bytes, memory) bind(c)
            import :: c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: net
            integer(c_size_t), value :: bytes
            integer(c_int32_t), intent(out) :: memory
        end function
        integer(c_int) function hiroba_net_free(net, memory) bind(c)
            import :: c_int, c_int32_t, c_ptr
            type(c_ptr), value :: net
            integer(c_int32_t), value :: memory
        end function
        integer(c_int) function hiroba_net_expose(net, own, bytes, exposed) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: net, own, exposed
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_net_withdraw(net, exposed) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: net, exposed
        end function
        integer(c_int) function hiroba_net_attach(net, exposed, memory) bind(c)
            import :: c_int, c_int32_t, c_ptr
            type(c_ptr), value :: net, exposed
            integer(c_int32_t), intent(out) :: memory
        end function
        subroutine hiroba_net_detach(net, memory) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: net
            integer(c_int32_t), value :: memory
        end subroutine
        integer(c_int) function hiroba_net_compare_swap128(net, rank, memory, offset, expected, wanted, found) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: net, expected, wanted, found
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
        end function
        integer(c_int) function hiroba_net_team(net, team) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: net
            type(c_ptr), intent(out) :: team
        end function
        integer(c_int) function hiroba_team_split(team, color, key, part) bind(c)
            import :: c_int, c_int32_t, c_ptr
            type(c_ptr), value :: team
            integer(c_int32_t), value :: color, key
            type(c_ptr), intent(out) :: part
        end function
        subroutine hiroba_team_free(team) bind(c)
            import :: c_ptr
            type(c_ptr), value :: team
        end subroutine
        integer(c_int32_t) function hiroba_team_member(team) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: team
        end function
        integer(c_int32_t) function hiroba_team_members(team) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: team
        end function
        integer(c_int32_t) function hiroba_team_rank(team, member) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: team
            integer(c_int32_t), value :: member
        end function
        integer(c_int) function hiroba_team_barrier(team, pending) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: team, pending
        end function
        integer(c_int) function hiroba_team_broadcast(team, root, data, bytes, pending) bind(c)
            import :: c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: team, data, pending
            integer(c_int32_t), value :: root
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_team_gather(team, root, mine, bytes, all, pending) bind(c)
            import :: c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: team, mine, all, pending
            integer(c_int32_t), value :: root
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_team_all_gather(team, mine, bytes, all, pending) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: team, mine, all, pending
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_team_all_to_all(team, out, in, bytes, pending) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: team, out, in, pending
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_team_reduce(team, root, values, count, type, operation, pending) bind(c)
            import :: c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: team, values, pending
            integer(c_int32_t), value :: root
            integer(c_size_t), value :: count
            integer(c_int), value :: type, operation
        end function
        integer(c_int) function hiroba_team_all_reduce(team, values, count, type, operation, pending) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: team, values, pending
            integer(c_size_t), value :: count
            integer(c_int), value :: type, operation
        end function
        integer(c_int) function hiroba_net_procedure(net, id, procedure, context) bind(c)
            import :: c_funptr, c_int, c_int32_t, c_ptr
            type(c_ptr), value :: net, context
            integer(c_int32_t), value :: id
            type(c_funptr), value :: procedure
        end function
        integer(c_int) function hiroba_net_call(net, rank, id, arguments, bytes, result, result_bytes, pending) bind(c)
            import :: c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: net, arguments, result, pending
            integer(c_int32_t), value :: rank, id
            integer(c_size_t), value :: bytes, result_bytes
        end function
        integer(c_int) function hiroba_net_handler(net, id, handler, context) bind(c)
            import :: c_funptr, c_int, c_int32_t, c_ptr
            type(c_ptr), value :: net, context
            integer(c_int32_t), value :: id
            type(c_funptr), value :: handler
        end function
        integer(c_int) function hiroba_net_connect(net) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: net
        end function
        subroutine hiroba_net_close(net) bind(c)
            import :: c_ptr
            type(c_ptr), value :: net
        end subroutine
        integer(c_int32_t) function hiroba_net_rank(net) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: net
        end function
        integer(c_int32_t) function hiroba_net_ranks(net) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: net
        end function
        type(c_ptr) function hiroba_net_provider(net) bind(c)
            import :: c_ptr
            type(c_ptr), value :: net
        end function
        type(c_ptr) function hiroba_net_local(net, memory) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: net
            integer(c_int32_t), value :: memory
        end function
        type(c_ptr) function hiroba_net_mapped(net, memory, rank) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: net
            integer(c_int32_t), value :: memory, rank
        end function
        integer(c_int) function hiroba_net_get(net, rank, memory, offset, to, bytes) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: net, to
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_net_put(net, rank, memory, offset, from, bytes) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: net, from
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_net_put_signal(net, rank, memory, offset, from, bytes, signal, &
                operation, value) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: net, from
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset, signal, value
            integer(c_size_t), value :: bytes
            integer(c_int), value :: operation
        end function
        integer(c_int) function hiroba_net_wait_word(net, memory, offset, comparison, value, &
                timeout_ns, found) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: net, found
            integer(c_int32_t), value :: memory
            integer(c_int64_t), value :: offset, value, timeout_ns
            integer(c_int), value :: comparison
        end function
        integer(c_int) function hiroba_net_atomic64(net, rank, memory, offset, operation, operand, &
                expected, old) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: net, old
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset, operand, expected
            integer(c_int), value :: operation
        end function
        integer(c_int) function hiroba_net_atomic32(net, rank, memory, offset, operation, operand, &
                expected, old) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: net, old
            integer(c_int32_t), value :: rank, memory, operand, expected
            integer(c_int64_t), value :: offset
            integer(c_int), value :: operation
        end function
        integer(c_int) function hiroba_net_atomic_double(net, rank, memory, offset, operation, operand, &
                old) bind(c)
            import :: c_double, c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: net, old
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
            integer(c_int), value :: operation
            real(c_double), value :: operand
        end function
        integer(c_int) function hiroba_net_atomic_float(net, rank, memory, offset, operation, operand, &
                old) bind(c)
            import :: c_float, c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: net, old
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
            integer(c_int), value :: operation
            real(c_float), value :: operand
        end function
        integer(c_int) function hiroba_net_start_get(net, rank, memory, offset, to, bytes, pending) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: net, to, pending
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_net_start_put(net, rank, memory, offset, from, bytes, pending) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: net, from, pending
            integer(c_int32_t), value :: rank, memory
            integer(c_int64_t), value :: offset
            integer(c_size_t), value :: bytes
        end function
        type(c_ptr) function hiroba_pending_create() bind(c)
            import :: c_ptr
        end function
        subroutine hiroba_pending_destroy(pending) bind(c)
            import :: c_ptr
            type(c_ptr), value :: pending
        end subroutine
        integer(c_int) function hiroba_net_wait(net, pending) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: net, pending
        end function
        integer(c_int) function hiroba_net_send(net, rank, id, arguments, count, payload, bytes) bind(c)
            import :: c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: net, arguments, payload
            integer(c_int32_t), value :: rank, id
            integer(c_size_t), value :: count, bytes
        end function
        subroutine hiroba_net_pause(net) bind(c)
            import :: c_ptr
            type(c_ptr), value :: net
        end subroutine
        integer(c_int) function hiroba_net_wake(net, rank) bind(c)
            import :: c_int, c_int32_t, c_ptr
            type(c_ptr), value :: net
            integer(c_int32_t), value :: rank
        end function
        subroutine hiroba_net_barrier(net) bind(c)
            import :: c_ptr
            type(c_ptr), value :: net
        end subroutine
        subroutine hiroba_net_broadcast(net, root, data, bytes) bind(c)
            import :: c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: net, data
            integer(c_int32_t), value :: root
            integer(c_size_t), value :: bytes
        end subroutine
        subroutine hiroba_net_all_gather(net, mine, bytes, all) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: net, mine, all
            integer(c_size_t), value :: bytes
        end subroutine
        subroutine hiroba_net_all_to_all(net, out, in, bytes) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: net, out, in
            integer(c_size_t), value :: bytes
        end subroutine
        integer(c_int) function hiroba_net_all_reduce(net, values, count, type, operation) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: net, values
            integer(c_size_t), value :: count
            integer(c_int), value :: type, operation
        end function
        ! --- gas

        integer(c_int) function hiroba_gas_open(gas) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: gas
        end function
        subroutine hiroba_gas_close(gas) bind(c)
            import :: c_ptr
            type(c_ptr), value :: gas
        end subroutine
        integer(c_int32_t) function hiroba_gas_rank(gas) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: gas
        end function
        integer(c_int32_t) function hiroba_gas_ranks(gas) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: gas
        end function
        integer(c_int64_t) function hiroba_gas_page_bytes(gas) bind(c)
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: gas
        end function
        subroutine hiroba_gas_barrier(gas) bind(c)
            import :: c_ptr
            type(c_ptr), value :: gas
        end subroutine
        integer(c_int64_t) function hiroba_gas_broadcast(gas, value, from) bind(c)
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: gas
            integer(c_int64_t), value :: value
            integer(c_int32_t), value :: from
        end function
        integer(c_int) function hiroba_gas_allocate(gas, bytes, where, place) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: gas, where
            integer(c_int64_t), value :: bytes
            integer(c_int64_t), intent(out) :: place
        end function
        integer(c_int) function hiroba_gas_allocate_together(gas, bytes, where, place) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: gas, where
            integer(c_int64_t), value :: bytes
            integer(c_int64_t), intent(out) :: place
        end function
        integer(c_int) function hiroba_gas_free(gas, place) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: gas
            integer(c_int64_t), value :: place
        end function
        integer(c_int) function hiroba_gas_share(gas, rank, bytes, where, first, count) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: gas, where
            integer(c_int32_t), value :: rank
            integer(c_int64_t), value :: bytes
            integer(c_int64_t), intent(out) :: first, count
        end function
        integer(c_int) function hiroba_gas_get(gas, from, to, bytes) bind(c)
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: gas, to
            integer(c_int64_t), value :: from
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_gas_put(gas, to, from, bytes) bind(c)
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: gas, from
            integer(c_int64_t), value :: to
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_gas_get_strided(gas, from, stride, bytes, count, to) bind(c)
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: gas, to
            integer(c_int64_t), value :: from, stride
            integer(c_size_t), value :: bytes, count
        end function
        integer(c_int) function hiroba_gas_put_strided(gas, to, stride, bytes, count, from) bind(c)
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: gas, from
            integer(c_int64_t), value :: to, stride
            integer(c_size_t), value :: bytes, count
        end function
        integer(c_int) function hiroba_gas_get_list(gas, from, bytes, count, to) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: gas, from, to
            integer(c_size_t), value :: bytes, count
        end function
        integer(c_int) function hiroba_gas_put_list(gas, to, bytes, count, from) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: gas, to, from
            integer(c_size_t), value :: bytes, count
        end function
        integer(c_int) function hiroba_gas_start_get(gas, from, to, bytes, pending) bind(c)
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: gas, to, pending
            integer(c_int64_t), value :: from
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function hiroba_gas_start_put(gas, to, from, bytes, pending) bind(c)
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: gas, from, pending
            integer(c_int64_t), value :: to
            integer(c_size_t), value :: bytes
        end function
        type(c_ptr) function hiroba_gas_pending_create() bind(c)
            import :: c_ptr
        end function
        subroutine hiroba_gas_pending_destroy(pending) bind(c)
            import :: c_ptr
            type(c_ptr), value :: pending
        end subroutine
        integer(c_int) function hiroba_gas_wait(gas, pending) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: gas, pending
        end function
        integer(c_int) function hiroba_gas_atomic64(gas, at, operation, operand, expected, old) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: gas, old
            integer(c_int64_t), value :: at, operand, expected
            integer(c_int), value :: operation
        end function
        integer(c_int) function hiroba_gas_atomic32(gas, at, operation, operand, expected, old) bind(c)
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: gas, old
            integer(c_int64_t), value :: at
            integer(c_int), value :: operation
            integer(c_int32_t), value :: operand, expected
        end function
        integer(c_int) function hiroba_gas_own(gas, first, bytes) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: gas
            integer(c_int64_t), value :: first, bytes
        end function
        integer(c_int) function hiroba_gas_view_open(gas, first, bytes, view, memory) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: gas
            integer(c_int64_t), value :: first, bytes
            type(c_ptr), intent(out) :: view, memory
        end function
        subroutine hiroba_gas_view_close(view) bind(c)
            import :: c_ptr
            type(c_ptr), value :: view
        end subroutine
        ! --- dsm

        integer(c_int) function hiroba_dsm_open(dsm) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: dsm
        end function
        subroutine hiroba_dsm_close(dsm) bind(c)
            import :: c_ptr
            type(c_ptr), value :: dsm
        end subroutine
        integer(c_int32_t) function hiroba_dsm_rank(dsm) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: dsm
        end function
        integer(c_int32_t) function hiroba_dsm_ranks(dsm) bind(c)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: dsm
        end function
        integer(c_int) function hiroba_dsm_allocate(dsm, bytes, alignment, memory) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: dsm
            integer(c_size_t), value :: bytes, alignment
            type(c_ptr), intent(out) :: memory
        end function
        integer(c_int) function hiroba_dsm_allocate_together(dsm, bytes, memory) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: dsm
            integer(c_size_t), value :: bytes
            type(c_ptr), intent(out) :: memory
        end function
        subroutine hiroba_dsm_free(dsm, memory) bind(c)
            import :: c_ptr
            type(c_ptr), value :: dsm, memory
        end subroutine
        subroutine hiroba_dsm_barrier(dsm) bind(c)
            import :: c_ptr
            type(c_ptr), value :: dsm
        end subroutine
        integer(c_int64_t) function hiroba_dsm_broadcast(dsm, value, from) bind(c)
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: dsm
            integer(c_int64_t), value :: value
            integer(c_int32_t), value :: from
        end function
        subroutine hiroba_dsm_all_gather(dsm, value, all) bind(c)
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: dsm, all
            integer(c_int64_t), value :: value
        end subroutine
        subroutine hiroba_dsm_flush(dsm) bind(c)
            import :: c_ptr
            type(c_ptr), value :: dsm
        end subroutine
        subroutine hiroba_dsm_lock(dsm, key) bind(c)
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: dsm
            integer(c_int64_t), value :: key
        end subroutine
        subroutine hiroba_dsm_unlock(dsm, key) bind(c)
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: dsm
            integer(c_int64_t), value :: key
        end subroutine
        integer(c_int) function hiroba_dsm_try_lock(dsm, key) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: dsm
            integer(c_int64_t), value :: key
        end function
        integer(c_int) function hiroba_dsm_atomic64(dsm, word, operation, operand, expected, old) bind(c)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: dsm, word, old
            integer(c_int), value :: operation
            integer(c_int64_t), value :: operand, expected
        end function
    end interface

contains

    !> The line of hiroba_last_error() as text of Fortran.
    function hiroba_error_text() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: line
        integer :: i
        interface
            integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
                import :: c_ptr, c_size_t
                type(c_ptr), value :: text
            end function
        end interface
        line = hiroba_last_error()
        call c_f_pointer(line, letters, [c_strlen(line)])
        allocate(character(len=size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function
end module
