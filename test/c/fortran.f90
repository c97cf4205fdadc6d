! SPDX-License-Identifier: BSD-3-Clause
! Role: the Fortran module of the C face on all three layers, with answers checked. Usage: c_fortran
module mail
    use hiroba
    implicit none
    integer(c_int64_t), volatile :: told = 0
contains
    subroutine arrived(context, from, arguments, count, payload, bytes) bind(c)
        type(c_ptr), value :: context, payload
        integer(c_int32_t), value :: from
        integer(c_size_t), value :: count, bytes
        integer(c_int64_t), intent(in) :: arguments(count)
        told = told + arguments(1) * (from + 1)
        if (bytes /= 0 .or. c_associated(context)) stop 9
        if (c_associated(payload)) told = told + 0
    end subroutine
end module

program fortran_face
    use hiroba
    use mail
    implicit none
    type(c_ptr) :: net, space, memory_of_all, view_handle
    integer(c_int32_t) :: rank, ranks, memory
    integer(c_int) :: code

    code = hiroba_net_open(net)
    if (code /= HIROBA_OK) then
        print '(a)', hiroba_error_text()
        stop 78
    end if
    rank = hiroba_net_rank(net)
    ranks = hiroba_net_ranks(net)
    call insist(hiroba_net_allocate(net, 4096_c_size_t, memory) == HIROBA_OK, 'allocate')
    call insist(hiroba_net_handler(net, 3, c_funloc(arrived), c_null_ptr) == HIROBA_OK, 'handler')
    call insist(hiroba_net_connect(net) == HIROBA_OK, 'connect')
    call on_net()
    call insist(hiroba_gas_open(space) == HIROBA_OK, 'gas')
    call on_gas()
    call insist(hiroba_dsm_open(memory_of_all) == HIROBA_OK, 'dsm')
    call on_dsm()
    if (rank == 0) print '(a, i0, a)', 'net, gas and dsm from Fortran on ', ranks, ' ranks: right'
    flush (6)
    call hiroba_dsm_close(memory_of_all)
    call hiroba_gas_close(space)
    call hiroba_net_close(net)

contains

    subroutine insist(good, what)
        logical, intent(in) :: good
        character(len=*), intent(in) :: what
        if (good) return
        write (0, '(4a)') 'WRONG: ', what, ' ', hiroba_error_text()
        error stop 9
    end subroutine

    subroutine on_net()
        real(c_double), target :: mine(20), found(20), old
        integer(c_int64_t), target :: word, arguments(1)
        integer :: i
        integer(c_int32_t) :: next
        next = mod(rank + 1, ranks)
        mine = [(real(i, c_double) + 100 * rank, i = 1, 20)]
        call insist(hiroba_net_put_signal(net, next, memory, 64_c_int64_t, c_loc(mine), 160_c_size_t, 8_c_int64_t, &
                    HIROBA_ADD, 1_c_int64_t) == HIROBA_OK, 'put_signal')
        call insist(hiroba_net_wait_word(net, memory, 8_c_int64_t, HIROBA_EQUAL, 1_c_int64_t, -1_c_int64_t, &
                    c_null_ptr) == HIROBA_OK, 'wait_word')
        call insist(hiroba_net_get(net, rank, memory, 64_c_int64_t, c_loc(found), 160_c_size_t) == HIROBA_OK, 'get')
        call insist(all(found == mine - 100 * rank + 100 * mod(rank + ranks - 1, ranks)), 'what was put')
        call insist(hiroba_net_atomic_double(net, 0, memory, 16_c_int64_t, HIROBA_ADD, 0.5_c_double, c_loc(old)) &
                    == HIROBA_OK, 'atomic_double')
        call insist(hiroba_net_atomic64(net, 0, memory, 24_c_int64_t, HIROBA_ADD, int(rank + 1, c_int64_t), &
                    0_c_int64_t, c_null_ptr) == HIROBA_OK, 'atomic64')
        call hiroba_net_barrier(net)
        call insist(hiroba_net_get(net, 0, memory, 16_c_int64_t, c_loc(old), 8_c_size_t) == HIROBA_OK, 'get')
        call insist(old == 0.5_c_double * ranks, 'sum of halves')
        call insist(hiroba_net_get(net, 0, memory, 24_c_int64_t, c_loc(word), 8_c_size_t) == HIROBA_OK, 'get')
        call insist(word == ranks * (ranks + 1) / 2, 'sum')
        call insist(hiroba_net_all_reduce(net, c_loc(mine), 1_c_size_t, HIROBA_DOUBLE, HIROBA_MAX) == HIROBA_OK, 'reduce')
        call insist(mine(1) == 1 + 100 * (ranks - 1), 'maximum')
        arguments = 5
        call insist(hiroba_net_send(net, next, 3, c_loc(arguments), 1_c_size_t, c_null_ptr, 0_c_size_t) == HIROBA_OK, 'send')
        do while (told == 0)
            call hiroba_net_pause(net)
        end do
        call insist(told == 5 * (mod(rank + ranks - 1, ranks) + 1), 'message')
        call insist(hiroba_net_put(net, ranks, memory, 0_c_int64_t, c_loc(mine), 8_c_size_t) == HIROBA_REFUSED, 'refusal')
        call insist(index(hiroba_error_text(), 'of a job of') > 0, 'text of a refusal')
        call hiroba_net_barrier(net)
    end subroutine

    subroutine on_gas()
        type(hiroba_distribution), target :: where
        integer(c_int64_t) :: place
        integer(c_int64_t), target :: word
        integer(c_int64_t), pointer :: seen
        type(c_ptr) :: bytes
        where%kind = HIROBA_ON_RANK
        where%rank = ranks - 1
        call insist(hiroba_gas_allocate_together(space, 8_c_int64_t, c_loc(where), place) == HIROBA_OK, 'allocate_together')
        call insist(hiroba_gas_atomic64(space, place, HIROBA_ADD, 7_c_int64_t, 0_c_int64_t, c_null_ptr) == HIROBA_OK, 'add')
        call hiroba_gas_barrier(space)
        if (rank == 0) then
            call insist(hiroba_gas_own(space, place, 8_c_int64_t) == HIROBA_OK, 'own')
            call insist(hiroba_gas_view_open(space, place, 8_c_int64_t, view_handle, bytes) == HIROBA_OK, 'view')
            call c_f_pointer(bytes, seen)
            call insist(seen == 7 * ranks, 'what the view has')
            seen = 1
            call hiroba_gas_view_close(view_handle)
        end if
        call hiroba_gas_barrier(space)
        call insist(hiroba_gas_get(space, place, c_loc(word), 8_c_size_t) == HIROBA_OK .and. word == 1, 'get')
        call hiroba_gas_barrier(space)
    end subroutine

    subroutine on_dsm()
        type(c_ptr) :: bytes
        integer(c_int64_t), pointer :: numbers(:)
        integer(c_int64_t) :: i
        call insist(hiroba_dsm_allocate_together(memory_of_all, 8000_c_size_t, bytes) == HIROBA_OK, 'allocate_together')
        call c_f_pointer(bytes, numbers, [1000])
        do i = 2 + rank, 1000, ranks
            numbers(i) = i
        end do
        call hiroba_dsm_lock(memory_of_all, 42_c_int64_t)
        numbers(1) = numbers(1) + 1
        call hiroba_dsm_unlock(memory_of_all, 42_c_int64_t)
        call hiroba_dsm_barrier(memory_of_all)
        call insist(sum(numbers) == 500500 - 1 + ranks, 'sum of shared numbers')
        call hiroba_dsm_barrier(memory_of_all)
    end subroutine
end program
