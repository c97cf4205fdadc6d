! SPDX-License-Identifier: BSD-3-Clause
! A unit that one thread has opened, used by another: by number; one that OPEN has chosen, beside one of each thread's
! own; one that the last thread has opened, used by main; one that nobody has opened; standard input; standard output
! that main has opened on a file. Or the program ends while a thread reads what never comes.
program fortran_unit
  use omp_lib
  implicit none
  integer :: i, unit, own, value, error, lines, sum, never(1)
  character(10) :: what
  character(200) :: name
  character(*), parameter :: file = 'fortran_unit_lines'
  call get_command_argument(1, what)
  if (what == 'input') then
    lines = 0
    sum = 0
    !$omp parallel private(value, error) reduction(+ : lines, sum)
    do
      !$omp critical
      read (*, *, iostat=error) value
      !$omp end critical
      if (error /= 0) exit
      lines = lines + 1
      sum = sum + value
    end do
    !$omp end parallel
    print *, lines, sum
    stop
  end if
  if (what == 'ends') then
    call execute_command_line('mkfifo fortran_unit_pipe')
    open (20, file='fortran_unit_pipe', action='readwrite')
    call execute_command_line('rm fortran_unit_pipe')
    open (21, file='/dev/stdout')
    write (21, *) 'written out'
    sum = 0
    !$omp parallel private(value)
    if (omp_get_thread_num() == omp_get_num_threads() - 1) then
      read (20, *) never(begun())
    else if (omp_get_thread_num() == 0) then
      do
        !$omp atomic read
        value = sum
        if (value /= 0) stop 5
      end do
    end if
    !$omp end parallel
  end if
  unit = 20
  if (what == 'output') unit = 6
  if (what == 'chosen') then
    open (newunit=unit, file=file, status='replace')
  else if (what /= 'main' .and. what /= 'nobody') then
    open (unit=unit, file=file, status='replace')
  end if
  !$omp parallel do ordered schedule(static, 1) private(own)
  do i = 1, 8
    if (what == 'chosen') open (newunit=own, status='scratch')
    !$omp ordered
    if (what /= 'main') then
      write (unit, *) i
    else if (omp_get_thread_num() == omp_get_num_threads() - 1) then
      if (i <= omp_get_num_threads()) open (unit=unit, file=file, status='replace')
      write (unit, *) 100 + i / omp_get_num_threads()
    end if
    !$omp end ordered
    if (what == 'chosen') close (own)
  end do
  if (what == 'main') write (unit, *) 9
  inquire (unit=unit, name=name)
  rewind (unit)
  lines = 0
  sum = 0
  do
    read (unit, *, iostat=error) value
    if (error /= 0) exit
    lines = lines + 1
    sum = sum + value * lines
  end do
  close (unit, status='delete')
  ! Without number: 6 may be closed.
  if (what == 'main' .and. lines == 8 / omp_get_max_threads() + 1) lines = 1
  if (what == 'main') sum = index(name, file)
  open (7, file='/dev/stdout')
  write (7, *) lines, sum
contains
  !> The unit is locked by the statement that calls.
  integer function begun()
    !$omp atomic write
    sum = 1
    begun = 1
  end function begun
end program fortran_unit
