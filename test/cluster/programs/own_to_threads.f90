! SPDX-License-Identifier: BSD-3-Clause
! What a thread may keep from one region to the next in libgfortran: its stream of random numbers,
! and a unit that it has opened. Argument: numbers or units.
program own_to_threads
  use omp_lib
  implicit none
  integer, parameter :: rounds = 30
  integer :: wrong, round, me, seed_size, status, last, unit, line, i
  integer, allocatable :: seed(:)
  character(len=16) :: kind
  double precision :: number, known(0:rounds)
  wrong = 0
  call get_command_argument(1, kind)
  call random_seed(size=seed_size)
  allocate(seed(seed_size))
  seed = [(7 * i + 3, i = 1, seed_size)]
  last = omp_get_max_threads() - 1
  call random_seed(put=seed)
  do i = 0, rounds
    call random_number(known(i))
  end do
  if (kind == 'numbers') then
    ! Only the last thread draws, from its own seed.
    !$omp parallel private(me, number)
    me = omp_get_thread_num()
    if (me == last) then
      call random_seed(put=seed)
      call random_number(number)
      if (number /= known(0)) wrong = wrong + 1
    end if
    !$omp end parallel
    do round = 1, rounds
      !$omp parallel private(me, number)
      me = omp_get_thread_num()
      if (me == last) then
        call random_number(number)
        if (number /= known(round)) wrong = wrong + 1
      end if
      !$omp end parallel
    end do
  else
    ! Threads write in turn: libgfortran's units are the process's.
    !$omp parallel private(me)
    me = omp_get_thread_num()
    !$omp critical
    open(unit=20 + me, status='scratch', form='formatted')
    !$omp end critical
    !$omp end parallel
    do round = 1, rounds
      !$omp parallel private(me)
      me = omp_get_thread_num()
      !$omp critical
      write(20 + me, *) me * 1000 + round
      !$omp end critical
      !$omp end parallel
    end do
    !$omp parallel private(me, unit, line, status, round) reduction(+:wrong)
    me = omp_get_thread_num()
    !$omp critical
    rewind(20 + me)
    do round = 1, rounds
      read(20 + me, *, iostat=status) line
      if (status /= 0 .or. line /= me * 1000 + round) wrong = wrong + 1
    end do
    close(20 + me)
    !$omp end critical
    !$omp end parallel
  end if
  print *, wrong
end program own_to_threads
